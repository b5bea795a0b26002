#include "werk/model/byte_source.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace werk::model {

Result<std::size_t> TextSource::read_at(std::uint64_t offset, std::span<char> out) {
  if (offset >= text_.size()) return std::size_t{0};
  const std::string_view rest = text_.substr(static_cast<std::size_t>(offset));
  const std::size_t count = std::min(rest.size(), out.size());
  std::copy_n(rest.data(), count, out.data());
  return count;
}

Result<std::unique_ptr<FileSource>> FileSource::open(const std::filesystem::path& path) {
  // Without O_NONBLOCK, opening a pipe would wait for a writer that may never come.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (descriptor < 0) {
    const int reason = errno;
    return fail(reason == ENOENT || reason == ENOTDIR ? ErrorCode::not_found : ErrorCode::io,
                fmt::format("Cannot open {}: {}.", path.string(), std::strerror(reason)));
  }
  struct stat facts {};
  if (::fstat(descriptor, &facts) != 0 || !S_ISREG(facts.st_mode)) {
    const char* what = S_ISDIR(facts.st_mode) ? "a folder" : "not a regular file";
    ::close(descriptor);
    return fail(ErrorCode::io, fmt::format("{} is {}; name a model file.", path.string(), what));
  }
  return std::make_unique<FileSource>(descriptor, static_cast<std::uint64_t>(facts.st_size));
}

FileSource::~FileSource() { ::close(descriptor_); }

Result<std::size_t> FileSource::read_at(std::uint64_t offset, std::span<char> out) {
  std::size_t filled = 0;
  while (filled < out.size()) {
    const ssize_t count = ::pread(descriptor_, out.data() + filled, out.size() - filled,
                                  static_cast<off_t>(offset + filled));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      return fail(ErrorCode::io, fmt::format("The file cannot be read: {}.", std::strerror(errno)));
    }
    if (count == 0) break;
    filled += static_cast<std::size_t>(count);
  }
  return filled;
}

}  // namespace werk::model
