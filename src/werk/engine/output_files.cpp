#include "werk/engine/output_files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "werk/model/model_id.hpp"

namespace werk::engine {
namespace {

constexpr std::string_view kEnding = ".log";

tl::unexpected<Error> refused(std::string_view what, const std::filesystem::path& path) {
  return fail(ErrorCode::io,
              fmt::format("can't {} {}: {}", what, path.string(), std::strerror(errno)));
}

// A file that is open for appending, for as long as this lives.
class Appended {
 public:
  explicit Appended(const std::filesystem::path& path)
      : file_(::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600)) {}
  Appended(const Appended&) = delete;
  Appended& operator=(const Appended&) = delete;
  ~Appended() {
    if (file_ >= 0) ::close(file_);
  }
  bool is_open() const { return file_ >= 0; }
  bool write(std::string_view text) const {
    while (!text.empty()) {
      const ssize_t count = ::write(file_, text.data(), text.size());
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return false;
      text.remove_prefix(static_cast<std::size_t>(count));
    }
    return true;
  }

 private:
  int file_;
};

std::string content_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

// Where the last `lines` lines begin, and how many there are from there on.
std::pair<std::size_t, std::size_t> begin_of_last(std::string_view text, std::size_t lines) {
  std::size_t found = 0;
  std::size_t at = text.size();
  while (at > 0 && found < lines) {
    const std::size_t before = at >= 2 ? text.rfind('\n', at - 2) : std::string_view::npos;
    at = before == std::string_view::npos ? 0 : before + 1;
    ++found;
  }
  return {at, found};
}

}  // namespace

std::filesystem::path OutputFiles::file(const std::string& model, unsigned age) const {
  const std::string name = model::folder_name(model) + std::string(kEnding);
  return folder_ / (age == 0 ? name : fmt::format("{}.{}", name, age));
}

Status OutputFiles::append(const std::string& model, std::string_view text) const {
  std::error_code error;
  std::filesystem::create_directories(folder_.parent_path(), error);
  if (::mkdir(folder_.c_str(), 0700) != 0 && errno != EEXIST) return refused("make", folder_);
  const std::filesystem::path path = file(model, 0);
  const std::uint64_t size = std::filesystem::file_size(path, error);
  if (!error && size > 0 && size + text.size() > file_bytes_max_) {
    Status rotated = rotate(model);
    if (!rotated) return rotated;
  }
  const Appended log(path);
  if (!log.is_open()) return refused("open", path);
  if (!log.write(text)) return refused("write", path);
  return {};
}

Status OutputFiles::rotate(const std::string& model) const {
  for (unsigned age = older_files_; age > 0; --age) {
    const std::filesystem::path from = file(model, age - 1);
    if (::rename(from.c_str(), file(model, age).c_str()) != 0 && errno != ENOENT)
      return refused("rename", from);
  }
  if (older_files_ > 0) return {};
  const std::filesystem::path only = file(model, 0);
  if (::unlink(only.c_str()) != 0) return refused("remove", only);
  return {};
}

Result<std::string> OutputFiles::last_lines(const std::string& model, std::size_t lines) const {
  std::string all;
  std::error_code error;
  for (unsigned age = 0; age <= older_files_ && lines > 0; ++age) {
    const std::filesystem::path path = file(model, age);
    if (!std::filesystem::exists(path, error)) continue;
    if (::access(path.c_str(), R_OK) != 0) return refused("read", path);
    const std::string text = content_of(path);
    const auto [at, found] = begin_of_last(text, lines);
    all.insert(0, text, at);
    lines -= found;
  }
  return all;
}

bool OutputFiles::holds(const std::string& model) const {
  std::error_code error;
  return std::filesystem::exists(file(model, 0), error);
}

std::vector<std::string> OutputFiles::models() const {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder_, error), end; !error && it != end;
       it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (!name.ends_with(kEnding)) continue;
    const auto id = model::folder_id(name.substr(0, name.size() - kEnding.size()));
    if (id) names.push_back(*id);
  }
  std::ranges::sort(names);
  return names;
}

std::string output_heading(std::string_view model) { return fmt::format("==> {} <==\n", model); }

}  // namespace werk::engine
