// Frames of the worker protocol (docs/worker-protocol.md): a length of four bytes, big-endian, then
// a text of that many bytes. FrameReader cuts a stream of bytes into them, with a limit that is
// checked before anything is kept; frame_of writes one. Pure values, any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "werk/base/result.hpp"

namespace werk::engine::worker {

inline constexpr std::size_t kFrameHeadBytes = 4;
// What a worker may send at once, and what it may be sent.
inline constexpr std::size_t kFromWorkerBytesMax = std::size_t{1} << 20;
inline constexpr std::size_t kToWorkerBytesMax = std::size_t{256} << 20;

class FrameReader {
 public:
  explicit FrameReader(std::size_t bytes_max) : bytes_max_(bytes_max) {}

  // The next bytes of the stream; they are copied.
  void feed(std::string_view bytes);
  // The next whole frame's text, valid until feed(); nothing if more bytes are needed. Fails with
  // engine_failed when a frame is longer than allowed; then the stream is lost.
  Result<std::optional<std::string_view>> next();
  // Whether the stream may end here: not inside a frame.
  bool at_boundary() const { return begin_ == bytes_.size(); }

 private:
  std::size_t bytes_max_;
  std::string bytes_;
  std::size_t begin_ = 0;  // of what no frame has been made of yet
};

// `text` must not be longer than kToWorkerBytesMax.
std::string frame_of(std::string_view text);

}  // namespace werk::engine::worker
