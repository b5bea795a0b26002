#include "werk/process/socket_folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

#include "werk/base/log.hpp"
#include "werk/process/linux.hpp"

namespace werk::process {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kPrefix = "werk-";
constexpr std::string_view kLockName = "lock";
constexpr std::size_t kStemBytesMax = 16;
constexpr std::size_t kNameBytesMax = kStemBytesMax + 1 + 10 + 5;  // stem-NUMBER.sock
constexpr std::size_t kFolderNameBytes = kPrefix.size() + 6;
constexpr int kAttemptsMax = 16;

std::vector<std::string> places(const Environment& environment) {
  std::vector<std::string> found;
  for (const std::string_view name : {"XDG_RUNTIME_DIR", "TMPDIR"}) {
    std::optional<std::string> place = environment(name);
    if (!place || !place->starts_with('/')) continue;
    while (place->size() > 1 && place->ends_with('/')) place->pop_back();
    found.push_back(*std::move(place));
  }
  found.emplace_back("/tmp");
  return found;
}

bool is_ours(const fs::path& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == ::geteuid();
}

// A folder whose lock is free has lost its node. One without a lock file is somebody else's, or is
// being made this moment. Its maker notices if we are between its steps, and makes another.
void remove_if_stale(const fs::path& folder) {
  Descriptor lock(::open((folder / kLockName).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  if (!lock || !os::lock_file(lock.get())) return;
  std::error_code error;
  fs::remove_all(folder, error);
  log::info("removed the socket folder of a node that is gone: {}", folder.native());
}

void remove_stale_folders(const std::string& place) {
  std::error_code error;
  fs::directory_iterator entries(place, fs::directory_options::skip_permission_denied, error);
  for (; !error && entries != fs::directory_iterator(); entries.increment(error)) {
    const std::string name = entries->path().filename().native();
    if (name.size() != kFolderNameBytes || !name.starts_with(kPrefix)) continue;
    if (is_ours(entries->path())) remove_if_stale(entries->path());
  }
}

// Locks the new folder's lock file. Empty: another node took the folder for a stale one meanwhile.
Descriptor lock_new_folder(const std::string& folder) {
  const std::string path = fmt::format("{}/{}", folder, kLockName);
  Descriptor lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock || !os::lock_file(lock.get())) return {};
  struct stat info {};
  if (::fstat(lock.get(), &info) != 0 || info.st_nlink == 0) return {};
  return lock;
}

struct Made {
  std::string path;
  Descriptor lock;
};

Result<Made> make_in(const std::string& place) {
  const std::size_t longest = place.size() + 1 + kFolderNameBytes + 1 + kNameBytesMax;
  if (longest > SocketFolder::kSocketPathBytesMax) {
    return fail(ErrorCode::io, fmt::format("{}: too long a path for sockets", place));
  }
  for (int attempt = 0; attempt < kAttemptsMax; ++attempt) {
    std::string path = fmt::format("{}/{}XXXXXX", place, kPrefix);
    if (::mkdtemp(path.data()) == nullptr) break;
    Descriptor lock = lock_new_folder(path);
    if (lock) return Made{std::move(path), std::move(lock)};
    ::rmdir(path.c_str());
  }
  return fail(ErrorCode::io, fmt::format("{}: {}", place, std::strerror(errno)));
}

}  // namespace

Result<SocketFolder> SocketFolder::create(const Environment& environment) {
  const std::vector<std::string> candidates = places(environment);
  for (const std::string& place : candidates) remove_stale_folders(place);
  std::string reasons;
  for (const std::string& place : candidates) {
    auto made = make_in(place);
    if (made) return SocketFolder(std::move(made->path), std::move(made->lock));
    reasons.append(reasons.empty() ? "" : "; ").append(made.error().message);
  }
  return fail(ErrorCode::io,
              fmt::format("no place for the node's private sockets ({}); set XDG_RUNTIME_DIR or "
                          "TMPDIR to a writable folder with a short path",
                          reasons));
}

SocketFolder::SocketFolder(std::string path, Descriptor lock)
    : path_(std::move(path)), lock_(std::move(lock)) {}

SocketFolder::~SocketFolder() {
  if (!lock_) return;
  std::error_code error;
  fs::remove_all(path_, error);
  if (error) log::warn("cannot remove {}: {}", path_, error.message());
}

std::string SocketFolder::next_socket(std::string_view stem) {
  std::string name;
  for (const char c : stem.substr(0, kStemBytesMax)) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    name.push_back(plain ? c : '-');
  }
  return fmt::format("{}/{}-{}.sock", path_, name, next_number_++);
}

}  // namespace werk::process
