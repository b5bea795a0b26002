#include "werk/engine/worker/frames.hpp"

#include <fmt/format.h>

#include "werk/base/assert.hpp"

namespace werk::engine::worker {
namespace {

constexpr unsigned kByteBits = 8;

std::size_t length_at(std::string_view head) {
  std::size_t length = 0;
  for (std::size_t i = 0; i < kFrameHeadBytes; ++i)
    length = (length << kByteBits) | static_cast<unsigned char>(head[i]);
  return length;
}

}  // namespace

void FrameReader::feed(std::string_view bytes) {
  bytes_.erase(0, begin_);
  begin_ = 0;
  bytes_ += bytes;
}

Result<std::optional<std::string_view>> FrameReader::next() {
  const std::string_view rest = std::string_view(bytes_).substr(begin_);
  if (rest.size() < kFrameHeadBytes) return std::nullopt;
  const std::size_t length = length_at(rest);
  if (length > bytes_max_) {
    return fail(
        ErrorCode::engine_failed, Origin::engine,
        fmt::format("the worker sent a frame of {} bytes; {} are allowed", length, bytes_max_));
  }
  if (rest.size() - kFrameHeadBytes < length) return std::nullopt;
  begin_ += kFrameHeadBytes + length;
  return rest.substr(kFrameHeadBytes, length);
}

std::string frame_of(std::string_view text) {
  WERK_ASSERT(text.size() <= kToWorkerBytesMax);
  std::string frame;
  frame.reserve(kFrameHeadBytes + text.size());
  for (std::size_t i = kFrameHeadBytes; i-- > 0;)
    frame += static_cast<char>((text.size() >> (i * kByteBits)) & 0xFFu);
  frame += text;
  return frame;
}

}  // namespace werk::engine::worker
