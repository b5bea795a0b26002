#include "werk/process/linux_group.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstring>

namespace werk::process::os {

namespace {

// Calls with the number of each process there is.
template <class Visit>
void for_each_process(Visit visit) {
  const int folder = ::open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;
  alignas(dirent64) std::array<char, 8192> entries;
  while (true) {
    const ssize_t bytes = ::getdents64(folder, entries.data(), entries.size());
    if (bytes <= 0) break;
    for (std::size_t at = 0; at < static_cast<std::size_t>(bytes);) {
      const auto* entry = reinterpret_cast<const dirent64*>(entries.data() + at);
      at += entry->d_reclen;
      const std::string_view name = entry->d_name;
      pid_t pid = 0;
      const auto read = std::from_chars(name.data(), name.data() + name.size(), pid);
      if (read.ec == std::errc() && read.ptr == name.data() + name.size()) visit(pid);
    }
  }
  ::close(folder);
}

int open_of_process(pid_t pid, std::string_view file) {
  std::array<char, 64> path{};
  fmt::format_to_n(path.data(), path.size() - 1, "/proc/{}/{}", pid, file);
  return ::open(path.data(), O_RDONLY | O_CLOEXEC);
}

// Its group if it has not ended, else 0.
pid_t group_of_living(pid_t pid) {
  const int file = open_of_process(pid, "stat");
  if (file < 0) return 0;
  std::array<char, 512> text{};
  const ssize_t bytes = ::read(file, text.data(), text.size());
  ::close(file);
  std::string_view rest(text.data(), static_cast<std::size_t>(std::max<ssize_t>(bytes, 0)));
  // The name may hold anything, so what follows its last bracket counts: " S PARENT GROUP ".
  const std::size_t name_end = rest.rfind(')');
  if (name_end == std::string_view::npos || rest.size() < name_end + 4) return 0;
  rest.remove_prefix(name_end + 2);
  if (rest.front() == 'Z' || rest.front() == 'X') return 0;
  rest.remove_prefix(2);
  rest.remove_prefix(std::min(rest.find(' ') + 1, rest.size()));
  pid_t group = 0;
  std::from_chars(rest.data(), rest.data() + rest.size(), group);
  return group;
}

template <class Visit>
void for_each_living_member(pid_t group, Visit visit) {
  for_each_process([&](pid_t pid) {
    if (group_of_living(pid) == group) visit(pid);
  });
}

constexpr std::string_view kSharedFolder = "/dev/shm/";

// Calls with the name of each file below /dev/shm that a process has mapped.
template <class Take>
void take_maps(pid_t pid, Take take) {
  const int file = open_of_process(pid, "maps");
  if (file < 0) return;
  std::array<char, 8192> text;
  std::size_t held = 0;
  while (true) {
    const ssize_t bytes = ::read(file, text.data() + held, text.size() - held);
    if (bytes <= 0) break;
    held += static_cast<std::size_t>(bytes);
    std::string_view rest(text.data(), held);
    for (std::size_t end = rest.find('\n'); end != std::string_view::npos; end = rest.find('\n')) {
      const std::string_view line = rest.substr(0, end);
      rest.remove_prefix(end + 1);
      const std::size_t at = line.find(kSharedFolder);
      if (at != std::string_view::npos) take(line.substr(at + kSharedFolder.size()));
    }
    // A line that fills the room is none of interest.
    held = rest.size() < text.size() ? rest.size() : 0;
    std::memmove(text.data(), rest.data(), held);
  }
  ::close(file);
}

// What Python's shared_memory, PyTorch and vLLM call theirs.
bool has_a_known_name(std::string_view name) {
  constexpr std::array<std::string_view, 4> kHeads{"psm_", "sem.mp-", "torch_", "vllm"};
  return std::ranges::any_of(kHeads, [&](std::string_view head) { return name.starts_with(head); });
}

bool is_tracker(pid_t pid) {
  const int file = open_of_process(pid, "cmdline");
  if (file < 0) return false;
  std::array<char, 1024> text{};
  const ssize_t bytes = ::read(file, text.data(), text.size());
  ::close(file);
  const std::string_view line(text.data(), static_cast<std::size_t>(std::max<ssize_t>(bytes, 0)));
  return line.contains("multiprocessing.resource_tracker");
}

}  // namespace

Descriptor open_process(pid_t pid) {
  return Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

std::vector<pid_t> living_members(pid_t group) {
  std::vector<pid_t> members;
  for_each_living_member(group, [&](pid_t pid) { members.push_back(pid); });
  return members;
}

Descriptor first_living_member(pid_t group) {
  Descriptor first;
  for_each_living_member(group, [&](pid_t pid) {
    if (!first) first = open_process(pid);
  });
  return first;
}

void wait_for_group_end(pid_t group, std::chrono::milliseconds limit) {
  const auto until = std::chrono::steady_clock::now() + limit;
  while (const Descriptor member = first_living_member(group)) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    if (left.count() <= 0) return;
    pollfd ended{member.get(), POLLIN, 0};
    ::poll(&ended, 1, static_cast<int>(left.count()));
  }
}

void kill_all_but_trackers(pid_t group) {
  for_each_living_member(group, [group](pid_t pid) {
    if (pid == group || !is_tracker(pid)) ::kill(pid, SIGKILL);
  });
}

void SharedFiles::note(pid_t group) {
  for_each_living_member(
      group, [this](pid_t pid) { take_maps(pid, [this](std::string_view name) { add(name); }); });
}

void SharedFiles::add(std::string_view name) {
  const bool fits = count_ < kMost && name.size() < kNameBytesMax && !name.contains('/') &&
                    !name.contains(' ');  // "(deleted)" follows a blank
  if (!fits || !has_a_known_name(name)) return;
  const auto end = names_.begin() + static_cast<std::ptrdiff_t>(count_);
  const auto same = [&](const Name& one) { return std::string_view(one.data()) == name; };
  if (std::any_of(names_.begin(), end, same)) return;
  std::ranges::copy(name, end->begin());
  ++count_;
}

void SharedFiles::remove_left() {
  if (count_ == 0) return;
  std::array<bool, kMost> in_use{};
  for_each_process([&](pid_t pid) {
    take_maps(pid, [&](std::string_view name) {
      for (std::size_t i = 0; i < count_; ++i) {
        if (std::string_view(names_[i].data()) == name) in_use[i] = true;
      }
    });
  });
  for (std::size_t i = 0; i < count_; ++i) {
    std::array<char, kNameBytesMax + kSharedFolder.size()> path{};
    fmt::format_to_n(path.data(), path.size() - 1, "{}{}", kSharedFolder, names_[i].data());
    struct stat facts {};
    const bool ours =
        ::lstat(path.data(), &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_uid == ::geteuid();
    if (ours && !in_use[i]) ::unlink(path.data());
  }
  count_ = 0;
}

}  // namespace werk::process::os
