#include "werk/app/download_place.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>

namespace werk::app {
namespace {

namespace fs = std::filesystem;
using model::GoOn;

// Whether the name still leads to what is open: the last holder may have deleted it meanwhile.
bool is_same(const fs::path& path, const process::Descriptor& file) {
  struct stat named {};
  struct stat open {};
  return ::stat(path.c_str(), &named) == 0 && ::fstat(file.get(), &open) == 0 &&
         named.st_ino == open.st_ino && named.st_dev == open.st_dev;
}

Result<process::Descriptor> locked(const fs::path& path, const std::function<GoOn()>& busy) {
  while (true) {
    process::Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (!file) return fail(model::write_error("create", path, errno));
    if (::flock(file.get(), LOCK_EX | LOCK_NB) == 0) {
      if (is_same(path, file)) return file;
      continue;
    }
    if (errno != EWOULDBLOCK && errno != EINTR) {
      return fail(model::write_error("lock", path, errno));
    }
    if (busy() == GoOn::stop) return fail(ErrorCode::cancelled, "stopped");
  }
}

}  // namespace

Result<DownloadPlace> DownloadPlace::take(const fs::path& downloads, std::string_view key,
                                          const std::function<GoOn()>& busy,
                                          model::WriteHook* hook) {
  model::StoreFiles files(hook);
  if (Status made = files.make_folders(downloads); !made) return pass_on(made);
  const fs::path lock_file = downloads / fmt::format("{}.lock", key);
  auto lock = locked(lock_file, busy);
  if (!lock) return pass_on(lock);
  DownloadPlace place(downloads / key, lock_file, std::move(*lock));
  if (Status made = files.make_folders(place.folder_); !made) return pass_on(made);
  return place;
}

DownloadPlace::DownloadPlace(DownloadPlace&& other) noexcept
    : folder_(std::exchange(other.folder_, {})),
      lock_file_(std::move(other.lock_file_)),
      lock_(std::move(other.lock_)) {}

DownloadPlace::~DownloadPlace() {
  if (folder_.empty()) return;
  std::error_code ignored;
  fs::remove(folder_, ignored);  // only an empty one
  if (!fs::exists(folder_, ignored)) fs::remove(lock_file_, ignored);
}

void DownloadPlace::clear() {
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

}  // namespace werk::app
