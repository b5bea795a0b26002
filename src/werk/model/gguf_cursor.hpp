// Walks through the bytes of a source from front to back, for the GGUF reader. The first failure
// sticks: from then on every read gives zero or nothing, so a caller reads a whole record and asks
// failed() once. Memory is one window plus what texts the caller asks to keep. One thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "werk/base/result.hpp"
#include "werk/model/byte_source.hpp"

namespace werk::model {

class GgufCursor {
 public:
  explicit GgufCursor(ByteSource& source);

  std::uint64_t position() const { return position_; }
  std::uint64_t bytes_left() const { return size_bytes_ - position_; }
  std::uint64_t size_bytes() const { return size_bytes_; }

  // What is being read, for messages: "the entry 'general.name'".
  void enter(std::string where) { where_ = std::move(where); }

  bool failed() const { return error_.has_value(); }
  Error take_error() { return std::move(*error_); }

  // Makes the walk fail with `model_unusable`; the first failure wins.
  void refuse(std::string message);
  void refuse_with(Error error);

  std::uint8_t u8() { return static_cast<std::uint8_t>(number(1)); }
  std::uint32_t u32() { return static_cast<std::uint32_t>(number(4)); }
  std::uint64_t u64() { return number(8); }
  // A little-endian number of 1, 2, 4 or 8 bytes, without sign.
  std::uint64_t number(std::size_t bytes);

  // A length and so many bytes, of which the first `keep_bytes_max` are returned.
  std::string text(std::size_t keep_bytes_max);
  void skip(std::uint64_t bytes);

 private:
  bool fill(char* out, std::size_t bytes);
  bool has(std::uint64_t bytes);

  ByteSource& source_;
  std::uint64_t size_bytes_;
  std::uint64_t position_ = 0;
  std::vector<char> window_;
  std::uint64_t window_begin_ = 0;
  std::size_t window_bytes_ = 0;
  std::string where_ = "the header";
  std::optional<Error> error_;
};

}  // namespace werk::model
