#include "tests/support/engine_control.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace werk::test {

namespace fs = std::filesystem;
namespace json = boost::json;

namespace {

constexpr std::chrono::seconds kWatchdog{30};

int listen_at(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  const int file = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const auto* generic = reinterpret_cast<const sockaddr*>(&address);
  if (::bind(file, generic, sizeof address) != 0 || ::listen(file, 256) != 0) {
    throw std::runtime_error("no control socket at " + path);
  }
  return file;
}

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

bool is_zombie(const fs::path& process) {
  const std::string stat = read_file(process / "stat");
  const std::size_t end = stat.rfind(')');
  return end == std::string::npos || end + 2 >= stat.size() || stat[end + 2] == 'Z';
}

bool has_entry(const std::string& environment, const std::string& entry) {
  for (std::size_t at = environment.find(entry); at != std::string::npos;
       at = environment.find(entry, at + 1)) {
    const std::size_t end = at + entry.size();
    const bool starts = at == 0 || environment[at - 1] == '\0';
    if (starts && (end == environment.size() || environment[end] == '\0')) return true;
  }
  return false;
}

}  // namespace

std::uint64_t EngineEvent::number(std::string_view member) const {
  const json::value* value = all.if_contains(member);
  return value != nullptr && value->is_number() ? value->to_number<std::uint64_t>() : 0;
}

std::string EngineEvent::text(std::string_view member) const {
  const json::value* value = all.if_contains(member);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : "";
}

EngineControl::EngineControl(json::object settings) {
  folder_ = (fs::temp_directory_path() / "fake-XXXXXX").native();
  if (::mkdtemp(folder_.data()) == nullptr) throw std::runtime_error("no temporary folder");
  mark_ = "WERK_TEST_MARK=" + fs::path(folder_).filename().native();
  listener_ = listen_at(folder_ + "/control");
  stop_ = ::eventfd(0, EFD_CLOEXEC);
  set_settings(settings);
  fs::create_symlink(program(), linked_program());
  reader_ = std::thread([this] { read(); });
}

EngineControl::~EngineControl() {
  ::eventfd_write(stop_, 1);
  reader_.join();
  for (const Line& line : lines_) {
    if (line.file >= 0) ::close(line.file);
  }
  ::close(listener_);
  ::close(stop_);
  std::error_code error;
  fs::remove_all(folder_, error);
}

void EngineControl::set_settings(const json::object& settings) {
  json::object beside = settings;
  beside["control"] = folder_ + "/control";
  const std::string path = linked_program() + ".json";
  std::ofstream(path + ".new", std::ios::binary) << json::serialize(beside);
  fs::rename(path + ".new", path);
}

std::string EngineControl::program() { return WERK_FAKE_LLAMA_SERVER; }

std::vector<std::string> EngineControl::environment() const {
  return {"FAKE_ENGINE_SCRIPT=" + linked_program() + ".json",
          "FAKE_ENGINE_CONTROL=" + folder_ + "/control", mark_};
}

void EngineControl::read() {
  while (true) {
    std::vector<pollfd> files{{stop_, POLLIN, 0}, {listener_, POLLIN, 0}};
    std::vector<int> engines{-1, -1};
    {
      const std::lock_guard lock(mutex_);
      for (std::size_t i = 0; i < lines_.size(); ++i) {
        if (lines_[i].file < 0) continue;
        files.push_back({lines_[i].file, POLLIN, 0});
        engines.push_back(static_cast<int>(i));
      }
    }
    if (::poll(files.data(), files.size(), -1) < 0 && errno != EINTR) return;
    if (files[0].revents != 0) return;
    for (std::size_t i = 2; i < files.size(); ++i) {
      if (files[i].revents != 0) read_line(engines[i]);
    }
    if (files[1].revents != 0) {
      const int file = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      const std::lock_guard lock(mutex_);
      if (file >= 0) lines_.push_back({file, ""});
    }
  }
}

void EngineControl::read_line(int engine) {
  std::array<char, 65536> buffer;
  Line& line = [&]() -> Line& {
    const std::lock_guard lock(mutex_);
    return lines_[static_cast<std::size_t>(engine)];
  }();  // only this thread adds lines, so the reference stays
  const ssize_t got = ::recv(line.file, buffer.data(), buffer.size(), 0);
  if (got < 0 && errno == EINTR) return;
  if (got <= 0) {
    {
      const std::lock_guard lock(mutex_);
      ::close(line.file);
      line.file = -1;
    }
    return add({engine, "gone", {}});
  }
  line.pending.append(buffer.data(), static_cast<std::size_t>(got));
  for (std::size_t end = line.pending.find('\n'); end != std::string::npos;
       end = line.pending.find('\n')) {
    json::value value = json::parse(line.pending.substr(0, end));
    line.pending.erase(0, end + 1);
    EngineEvent event{engine, "", std::move(value.as_object())};
    event.name = event.text("event");
    add(std::move(event));
  }
}

void EngineControl::add(EngineEvent event) {
  std::function<void()> waker;
  {
    const std::lock_guard lock(mutex_);
    history_.push_back(event);
    waiting_.push_back(std::move(event));
    waker = waker_;
  }
  changed_.notify_all();
  if (waker) waker();
}

std::optional<EngineEvent> EngineControl::take_locked(std::string_view name,
                                                      const Matcher& matcher) {
  for (auto event = waiting_.begin(); event != waiting_.end(); ++event) {
    if (event->name != name || (matcher && !matcher(*event))) continue;
    EngineEvent taken = std::move(*event);
    waiting_.erase(event);
    return taken;
  }
  return std::nullopt;
}

std::optional<EngineEvent> EngineControl::take(std::string_view name, const Matcher& matcher) {
  const std::lock_guard lock(mutex_);
  return take_locked(name, matcher);
}

EngineEvent EngineControl::expect(std::string_view name, const Matcher& matcher) {
  const auto limit = std::chrono::steady_clock::now() + kWatchdog;
  std::unique_lock lock(mutex_);
  while (true) {
    if (auto event = take_locked(name, matcher)) return *std::move(event);
    if (changed_.wait_until(lock, limit) != std::cv_status::timeout) continue;
    std::string seen;
    for (const EngineEvent& event : waiting_) {
      seen += " " + std::to_string(event.engine) + ":" + event.name;
    }
    throw std::runtime_error("no event '" + std::string(name) + "' came; not taken:" + seen);
  }
}

EngineEvent EngineControl::expect_from(int engine, std::string_view name) {
  return expect(name, [engine](const EngineEvent& event) { return event.engine == engine; });
}

std::size_t EngineControl::count(std::string_view name) const { return all(name).size(); }

std::vector<EngineEvent> EngineControl::all(std::string_view name) const {
  const std::lock_guard lock(mutex_);
  std::vector<EngineEvent> found;
  for (const EngineEvent& event : history_) {
    if (event.name == name) found.push_back(event);
  }
  return found;
}

void EngineControl::set_waker(std::function<void()> waker) {
  const std::lock_guard lock(mutex_);
  waker_ = std::move(waker);
}

void EngineControl::send(int engine, json::object command) {
  const std::string line = json::serialize(command) + "\n";
  const std::lock_guard lock(mutex_);
  const int file = lines_.at(static_cast<std::size_t>(engine)).file;
  if (file >= 0) ::send(file, line.data(), line.size(), MSG_NOSIGNAL);
}

void EngineControl::exit(int engine, int code, std::string_view text) {
  send(engine, {{"do", "exit"}, {"code", code}, {"stderr", text}});
}

void EngineControl::order(int engine, std::string_view what, std::uint64_t request) {
  send(engine, {{"do", what}, {"request", request}});
}

void EngineControl::step(int engine, std::uint64_t request, std::uint64_t count) {
  send(engine, {{"do", "step"}, {"request", request}, {"count", count}});
}

std::uint64_t EngineControl::open_max(int engine) {
  send(engine, {{"do", "report"}});
  return expect_from(engine, "report").number("open_max");
}

std::vector<pid_t> EngineControl::living() const {
  std::vector<pid_t> found;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator("/proc", error)) {
    const std::string name = entry.path().filename().native();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const auto pid = static_cast<pid_t>(std::stol(name));
    if (pid == ::getpid() || !has_entry(read_file(entry.path() / "environ"), mark_)) continue;
    if (!is_zombie(entry.path())) found.push_back(pid);
  }
  return found;
}

bool EngineControl::none_living_within(std::chrono::milliseconds limit) const {
  const auto until = std::chrono::steady_clock::now() + limit;
  while (true) {
    const std::vector<pid_t> pids = living();
    if (pids.empty()) return true;
    for (const pid_t pid : pids) {
      const int process = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
      if (process < 0) continue;
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
          until - std::chrono::steady_clock::now());
      pollfd ended{process, POLLIN, 0};
      const int ready = ::poll(&ended, 1, std::max(0, static_cast<int>(left.count())));
      ::close(process);
      if (ready == 0) return false;
    }
  }
}

}  // namespace werk::test
