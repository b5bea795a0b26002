// What a child printed: OutputTail keeps the last bytes, LineSplitter cuts a byte stream into
// lines. Both are bounded whatever the child does, hold no descriptor and are owned by the child's
// state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace werk::process {

class OutputTail {
 public:
  explicit OutputTail(std::size_t bytes_max) : bytes_max_(bytes_max) {}

  void append(std::string_view bytes);
  // The last bytes, at most bytes_max of them.
  std::string text() const;
  // Everything that was ever appended.
  std::uint64_t total_bytes() const { return total_bytes_; }

 private:
  std::size_t bytes_max_;
  std::string kept_;  // up to twice bytes_max, so that cutting the front is rare
  std::uint64_t total_bytes_ = 0;
};

class LineSplitter {
 public:
  // A longer line is handed on in pieces of this size.
  static constexpr std::size_t kLineBytesMax = 8192;

  // Calls `line` for every line completed by these bytes, without its line end (LF or CRLF).
  void append(std::string_view bytes, const std::function<void(std::string_view)>& line);
  // Hands on what stands after the last line end, if anything.
  void finish(const std::function<void(std::string_view)>& line);

 private:
  std::string open_;
};

}  // namespace werk::process
