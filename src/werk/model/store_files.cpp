#include "werk/model/store_files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#if __has_include(<linux/fs.h>)
#include <linux/fs.h>
#endif

#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "werk/base/digest.hpp"
#include "werk/base/text.hpp"

namespace werk::model {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kCopyBytes = 1024 * 1024;
constexpr std::int64_t kNsOfSecond = 1'000'000'000;
constexpr mode_t kFileMode = 0666;    // less the process's umask
constexpr mode_t kFolderMode = 0777;  // likewise

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return number_; }

 private:
  int number_;
};

std::int64_t modified_ns(const struct stat& facts) {
  return facts.st_mtim.tv_sec * kNsOfSecond + facts.st_mtim.tv_nsec;
}

// A copy that shares the blocks until one side is written; only some file systems can.
bool clone(int source, int target) {
#ifdef FICLONE
  return ::ioctl(target, FICLONE, source) == 0;
#else
  return false;
#endif
}

Error changed(const fs::path& path) {
  return Error{ErrorCode::conflict,
               fmt::format("{} changed while it was read; import it again when nobody writes it.",
                           path.string())};
}

Error stopped() { return Error{ErrorCode::cancelled, "Stopped; nothing was changed."}; }

Status check_space(int target, const CopyOrder& order) {
  struct statvfs space {};
  if (::fstatvfs(target, &space) != 0) return {};  // then writing will tell
  const std::uint64_t free_bytes = std::uint64_t{space.f_bavail} * space.f_frsize;
  if (free_bytes >= order.bytes_still_needed) return {};
  return fail(ErrorCode::io,
              fmt::format("{} more are needed in {}, but only {} are free. Make room, use --link, "
                          "or set WERK_HOME to another disk.",
                          readable_bytes(order.bytes_still_needed),
                          order.target.parent_path().string(), readable_bytes(free_bytes)));
}

}  // namespace

Error read_error(std::string_view what, const fs::path& path, int reason) {
  return Error{ErrorCode::io,
               fmt::format("Cannot {} {}: {}.", what, path.string(), std::strerror(reason))};
}

Error write_error(std::string_view what, const fs::path& path, int reason) {
  Error error = read_error(what, path, reason);
  switch (reason) {
    case ENOSPC:
    case EDQUOT:
      error.message += " Make room, or set WERK_HOME to a folder on another disk.";
      break;
    case EACCES:
    case EPERM:
    case EROFS:
      error.message += " Set WERK_HOME (or --model-home) to a folder you may write.";
      break;
    default: break;
  }
  return error;
}

FileLock::FileLock(FileLock&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

FileLock::~FileLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Status StoreFiles::make_folder(const fs::path& path) {
  int reason = before(WriteStep::create_folder);
  if (reason == 0 && ::mkdir(path.c_str(), kFolderMode) != 0) reason = errno;
  return reason == 0 ? Status() : fail(write_error("create the folder", path, reason));
}

Status StoreFiles::make_folders(const fs::path& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) return {};
  if (path.has_parent_path() && path.parent_path() != path) {
    if (Status parent = make_folders(path.parent_path()); !parent) return parent;
  }
  Status made = make_folder(path);
  // Another process may have been faster.
  if (made || fs::is_directory(path, error)) return {};
  if (fs::exists(path, error)) return fail(write_error("create the folder", path, ENOTDIR));
  return made;
}

Status StoreFiles::write_all(int descriptor, std::string_view bytes, const fs::path& path) {
  while (!bytes.empty()) {
    int reason = before(WriteStep::write_bytes);
    ssize_t count = 0;
    if (reason == 0) {
      count = ::write(descriptor, bytes.data(), bytes.size());
      if (count < 0) reason = errno;
    }
    if (reason == EINTR) continue;
    if (reason != 0) return fail(write_error("write", path, reason));
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return {};
}

Status StoreFiles::sync_file(int descriptor, const fs::path& path) {
  int reason = before(WriteStep::sync_file);
  if (reason == 0 && ::fsync(descriptor) != 0) reason = errno;
  return reason == 0 ? Status() : fail(write_error("write", path, reason));
}

Status StoreFiles::write_file(const fs::path& path, std::string_view content) {
  int reason = before(WriteStep::create_file);
  const Descriptor file(
      reason == 0 ? ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kFileMode) : -1);
  if (file.get() < 0) {
    if (reason == 0) reason = errno;
    return fail(write_error("create", path, reason));
  }
  Status written = write_all(file.get(), content, path);
  return written ? sync_file(file.get(), path) : written;
}

Result<std::string> StoreFiles::copy_bytes(int source, int target, std::uint64_t size_bytes,
                                           const CopyOrder& order, const OnBytes& on_bytes) {
  Sha256 digest;
  std::vector<char> buffer(kCopyBytes);
  std::uint64_t done_bytes = 0;
  while (true) {
    const ssize_t count = ::read(source, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail(read_error("read", order.source, errno));
    if (count == 0) break;
    const std::string_view bytes(buffer.data(), static_cast<std::size_t>(count));
    done_bytes += bytes.size();
    // A file that somebody writes as fast as it is read would never end.
    if (done_bytes > size_bytes) return fail(changed(order.source));
    digest.update(bytes);
    if (target >= 0) {
      if (Status written = write_all(target, bytes, order.target); !written) {
        return pass_on(written);
      }
    }
    if (on_bytes && on_bytes(bytes.size()) == GoOn::stop) {
      return fail(stopped());
    }
  }
  if (done_bytes < size_bytes) return fail(changed(order.source));
  return digest.finish();
}

Result<CopiedFile> StoreFiles::copy(const CopyOrder& order, const OnBytes& on_bytes) {
  const Descriptor source(::open(order.source.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (source.get() < 0) return fail(read_error("open", order.source, errno));
  struct stat first {};
  if (::fstat(source.get(), &first) != 0 || !S_ISREG(first.st_mode)) {
    return fail(ErrorCode::io, fmt::format("{} is not a regular file.", order.source.string()));
  }
  const bool copies = !order.target.empty();
  const auto size_bytes = static_cast<std::uint64_t>(first.st_size);
  if (!copies && !order.known_sha256.empty()) {
    if (on_bytes && on_bytes(size_bytes) == GoOn::stop) return fail(stopped());
    return CopiedFile{size_bytes, modified_ns(first), order.known_sha256};
  }
  int reason = copies ? before(WriteStep::create_file) : 0;
  const Descriptor target(
      copies && reason == 0
          ? ::open(order.target.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, kFileMode)
          : -1);
  if (copies && target.get() < 0) {
    if (reason == 0) reason = errno;
    return fail(write_error("create", order.target, reason));
  }
  Result<std::string> digest;
  if (copies && clone(source.get(), target.get())) {
    // What the clone holds is digested, since the source may go on changing.
    digest = copy_bytes(target.get(), -1, size_bytes, order, on_bytes);
  } else {
    if (copies) {
      if (Status space = check_space(target.get(), order); !space) return pass_on(space);
    }
    digest = copy_bytes(source.get(), target.get(), size_bytes, order, on_bytes);
  }
  if (!digest) return pass_on(digest);
  if (copies) {
    if (Status synced = sync_file(target.get(), order.target); !synced) return pass_on(synced);
  }
  struct stat last {};
  if (::fstat(source.get(), &last) != 0 || last.st_size != first.st_size ||
      modified_ns(last) != modified_ns(first)) {
    return fail(changed(order.source));
  }
  return CopiedFile{size_bytes, modified_ns(first), std::move(*digest)};
}

Status StoreFiles::adopt(const fs::path& from, const fs::path& to) {
  const Descriptor file(::open(from.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return fail(read_error("open", from, errno));
  if (Status synced = sync_file(file.get(), from); !synced) return synced;
  if (const int reason = before(WriteStep::create_file); reason != 0) {
    return fail(write_error("create", to, reason));
  }
  if (::link(from.c_str(), to.c_str()) == 0) return {};
  // Some file systems (exFAT) know no second name.
  if (::rename(from.c_str(), to.c_str()) == 0) return {};
  return fail(write_error("create", to, errno));
}

Status StoreFiles::sync_folder(const fs::path& path) {
  int reason = before(WriteStep::sync_folder);
  if (reason == 0) {
    const Descriptor folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (folder.get() < 0 || ::fsync(folder.get()) != 0) reason = errno;
    // Some file systems cannot sync folders; there is nothing better to do on them.
    if (reason == EINVAL) reason = 0;
  }
  return reason == 0 ? Status() : fail(write_error("write the folder", path, reason));
}

Status StoreFiles::move(const fs::path& from, const fs::path& to, WriteStep step) {
  int reason = before(step);
  if (reason == 0 && ::rename(from.c_str(), to.c_str()) != 0) reason = errno;
  if (reason == 0) return {};
  if (reason == EEXIST || reason == ENOTEMPTY || reason == ENOTDIR) {
    return fail(ErrorCode::conflict, fmt::format("{} exists already.", to.string()));
  }
  return fail(write_error("create", to, reason));
}

Status StoreFiles::erase(const fs::path& path) {
  if (const int reason = before(WriteStep::erase); reason != 0) {
    return fail(write_error("delete", path, reason));
  }
  std::error_code error;
  fs::remove_all(path, error);
  return error ? fail(write_error("delete", path, error.value())) : Status();
}

Result<FileLock> StoreFiles::lock(const fs::path& path) {
  int reason = before(WriteStep::create_file);
  FileLock lock(reason == 0 ? ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, kFileMode) : -1);
  if (lock.descriptor_ < 0) {
    if (reason == 0) reason = errno;
    return fail(write_error("open", path, reason));
  }
  while (::flock(lock.descriptor_, LOCK_EX) != 0) {
    if (errno != EINTR) return fail(write_error("lock", path, errno));
  }
  return lock;
}

std::optional<FileLock> StoreFiles::try_lock(const fs::path& path) {
  FileLock lock(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (lock.descriptor_ < 0 || ::flock(lock.descriptor_, LOCK_EX | LOCK_NB) != 0) {
    return std::nullopt;
  }
  return lock;
}

}  // namespace werk::model
