#include "werk/model/gguf_cursor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace werk::model {
namespace {

constexpr std::size_t kWindowBytes = 64 * 1024;

}  // namespace

GgufCursor::GgufCursor(ByteSource& source)
    : source_(source),
      size_bytes_(source.size_bytes()),
      window_(static_cast<std::size_t>(std::min<std::uint64_t>(kWindowBytes, size_bytes_))) {}

void GgufCursor::refuse(std::string message) {
  refuse_with(Error{ErrorCode::model_unusable, std::move(message)});
}

void GgufCursor::refuse_with(Error error) {
  if (!error_) error_ = std::move(error);
}

bool GgufCursor::has(std::uint64_t bytes) {
  if (failed()) return false;
  if (bytes <= bytes_left()) return true;
  refuse(fmt::format("The file is cut or damaged: {} should go on for {} bytes at position {}, "
                     "but the file ends at {}. Get it anew.",
                     where_, bytes, position_, size_bytes_));
  return false;
}

bool GgufCursor::fill(char* out, std::size_t bytes) {
  while (bytes > 0) {
    if (position_ < window_begin_ || position_ >= window_begin_ + window_bytes_) {
      const Result<std::size_t> count = source_.read_at(position_, window_);
      if (!count) {
        refuse_with(count.error());
        return false;
      }
      window_begin_ = position_;
      window_bytes_ = *count;
      if (*count == 0) {
        refuse("The file became shorter while it was read.");
        return false;
      }
    }
    const auto begin = static_cast<std::size_t>(position_ - window_begin_);
    const std::size_t count = std::min(bytes, window_bytes_ - begin);
    std::memcpy(out, window_.data() + begin, count);
    out += count;
    bytes -= count;
    position_ += count;
  }
  return true;
}

std::uint64_t GgufCursor::number(std::size_t bytes) {
  std::array<char, 8> raw{};
  if (!has(bytes) || !fill(raw.data(), bytes)) return 0;
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes; ++i) {
    value |= static_cast<std::uint64_t>(static_cast<unsigned char>(raw[i])) << (8 * i);
  }
  return value;
}

std::string GgufCursor::text(std::size_t keep_bytes_max) {
  const std::uint64_t length = u64();
  if (!has(length)) return {};
  std::string kept(static_cast<std::size_t>(std::min<std::uint64_t>(length, keep_bytes_max)), '\0');
  if (!fill(kept.data(), kept.size())) return {};
  skip(length - kept.size());
  return kept;
}

void GgufCursor::skip(std::uint64_t bytes) {
  if (has(bytes)) position_ += bytes;
}

}  // namespace werk::model
