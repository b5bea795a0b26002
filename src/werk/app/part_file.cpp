#include "werk/app/part_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <vector>

namespace werk::app {
namespace {

namespace fs = std::filesystem;
using model::GoOn;
using model::WriteStep;

constexpr mode_t kFileMode = 0666;  // less the process's umask
constexpr std::size_t kReadBytes = 1024 * 1024;

}  // namespace

Result<PartFile> PartFile::open(const fs::path& path, std::uint64_t bytes_max,
                                model::WriteHook* hook) {
  int reason = hook ? hook->before(WriteStep::create_file) : 0;
  process::Descriptor file;
  if (reason == 0) {
    file = process::Descriptor(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, kFileMode));
    reason = file ? 0 : errno;
  }
  if (reason != 0) return fail(model::write_error("create", path, reason));
  struct stat facts {};
  if (::fstat(file.get(), &facts) != 0) return fail(model::read_error("read", path, errno));
  PartFile part(path, std::move(file), hook);
  part.size_bytes_ = static_cast<std::uint64_t>(facts.st_size);
  if (part.size_bytes_ > bytes_max) {
    if (Status cleared = part.clear(); !cleared) return pass_on(cleared);
  }
  return part;
}

Status PartFile::digest_present(const std::function<GoOn()>& go_on) {
  digest_ = Sha256();
  std::vector<char> buffer(kReadBytes);
  std::uint64_t done_bytes = 0;
  while (done_bytes < size_bytes_) {
    if (go_on() == GoOn::stop) return fail(ErrorCode::cancelled, "stopped");
    const ssize_t count =
        ::pread(file_.get(), buffer.data(), buffer.size(), static_cast<off_t>(done_bytes));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return fail(model::read_error("read", path_, count < 0 ? errno : EIO));
    digest_.update(std::string_view(buffer.data(), static_cast<std::size_t>(count)));
    done_bytes += static_cast<std::uint64_t>(count);
  }
  return {};
}

Status PartFile::append(std::string_view bytes) {
  while (!bytes.empty()) {
    int reason = before(WriteStep::write_bytes);
    ssize_t count = 0;
    if (reason == 0) {
      count = ::pwrite(file_.get(), bytes.data(), bytes.size(), static_cast<off_t>(size_bytes_));
      if (count < 0) reason = errno;
    }
    if (reason == EINTR) continue;
    if (reason != 0) return fail(model::write_error("write", path_, reason));
    const auto written = static_cast<std::size_t>(count);
    digest_.update(bytes.substr(0, written));
    size_bytes_ += written;
    bytes.remove_prefix(written);
  }
  return {};
}

Status PartFile::clear() {
  int reason = before(WriteStep::write_bytes);
  if (reason == 0 && ::ftruncate(file_.get(), 0) != 0) reason = errno;
  if (reason != 0) return fail(model::write_error("write", path_, reason));
  size_bytes_ = 0;
  digest_ = Sha256();
  return {};
}

Status PartFile::publish(const fs::path& whole) {
  int reason = before(WriteStep::sync_file);
  if (reason == 0 && ::fsync(file_.get()) != 0) reason = errno;
  if (reason != 0) return fail(model::write_error("write", path_, reason));
  model::StoreFiles files(hook_);
  return files.move(path_, whole, WriteStep::publish);
}

void PartFile::remove() {
  std::error_code ignored;
  fs::remove(path_, ignored);
}

}  // namespace werk::app
