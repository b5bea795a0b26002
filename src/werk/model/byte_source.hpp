// Where the bytes of a model file come from: a file that is read piece by piece, or text in memory
// (tests, fuzzers). The reader of GGUF headers asks for small pieces and never for the whole. A
// source belongs to one thread at a time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>

#include "werk/base/result.hpp"

namespace werk::model {

class ByteSource {
 public:
  virtual ~ByteSource() = default;

  virtual std::uint64_t size_bytes() const = 0;

  // Fills `out` with the bytes from `offset` on and says how many there were: fewer than asked only
  // at the end. Fails with `io` and the operating system's words when reading does.
  virtual Result<std::size_t> read_at(std::uint64_t offset, std::span<char> out) = 0;
};

// Borrows the text, which must outlive it.
class TextSource final : public ByteSource {
 public:
  explicit TextSource(std::string_view text) : text_(text) {}

  std::uint64_t size_bytes() const override { return text_.size(); }
  Result<std::size_t> read_at(std::uint64_t offset, std::span<char> out) override;

 private:
  std::string_view text_;
};

class FileSource final : public ByteSource {
 public:
  // Fails with `not_found` when there is no such file, with `io` when it cannot be opened or is not
  // a regular file (folders, pipes and devices are refused without waiting for them). The message
  // names the path.
  static Result<std::unique_ptr<FileSource>> open(const std::filesystem::path& path);

  // Takes over an open descriptor of a regular file of this size.
  FileSource(int descriptor, std::uint64_t size_bytes)
      : descriptor_(descriptor), size_bytes_(size_bytes) {}
  ~FileSource() override;
  FileSource(const FileSource&) = delete;
  FileSource& operator=(const FileSource&) = delete;

  std::uint64_t size_bytes() const override { return size_bytes_; }
  Result<std::size_t> read_at(std::uint64_t offset, std::span<char> out) override;

 private:
  int descriptor_;
  std::uint64_t size_bytes_;
};

}  // namespace werk::model
