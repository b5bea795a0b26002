// bench_mock: an engine without a model. It has llama-server's command line and routes as far as a
// node needs them, and answers chat requests at once from bytes it prepared, on one thread, so that
// what is measured is whoever stands in front of it.
//
// In a request: max_tokens (words of the answer), stream, stream_options, return_progress as with
// the real one; in the prompt's text "[pace_us=N]" puts a pause between two words, "[hold=prefill]"
// sends the head and one progress event, then nothing.
// In the environment: BENCH_MOCK_READY_MS (how long /health says 503), BENCH_MOCK_TCP=1 (listens on
// a port of loopback too), BENCH_MOCK_EVENTS (a named pipe for "spawned", "ready"; with
// BENCH_MOCK_TELL=1 also "request" and "closed" for each call; see support/mock_control.hpp),
// BENCH_MOCK_RECORD (a file that gets the body of each call, one a line).
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "bench/mock_answers.hpp"
#include "bench/support/mock_control.hpp"

namespace werk::bench {
namespace {

constexpr std::string_view kHelp =
    "----- common params -----\n\n"
    "-h,    --help, --usage                  print usage and exit\n"
    "-t,    --threads N                      threads\n"
    "-tb,   --threads-batch N                threads\n"
    "-c,    --ctx-size N                     context\n"
    "-b,    --batch-size N                   batch\n"
    "-ub,   --ubatch-size N                  batch\n"
    "-dev,  --device <dev1,dev2,..>          devices\n"
    "-fit,  --fit [on|off]                   fit\n"
    "-m,    --model FNAME                    model\n"
    "-np,   --parallel N                     slots\n"
    "-kvu,  --kv-unified, -no-kvu, --no-kv-unified\n"
    "                                        unified\n"
    "-a,    --alias STRING                   alias\n"
    "--host HOST                             address or a path ending in .sock\n"
    "--port PORT                             port\n"
    "--threads-http N                        threads\n"
    "--metrics                               metrics\n"
    "--slots, --no-slots                     slots\n"
    "--jinja, --no-jinja                     templates\n"
    "--offline                               offline\n"
    "--no-ui                                 no page\n"
    "--cors-origins ORIGINS                  origins\n"
    "--cache-ram N                           cache\n";

struct Settings {
  std::string socket;
  std::string alias = "mock";
  std::uint64_t slots = 1;
  std::uint64_t context = 4096;
  long ready_ms = 0;
  bool tcp = false;
  bool tells_calls = false;
  int events = -1;
  int record = -1;
};

void tell(const Settings& settings, std::string_view event, std::uint64_t number) {
  if (settings.events < 0) return;
  const std::string line = fmt::format("{} {} {} {}\n", event, ::getpid(), steady_us(), number);
  if (::write(settings.events, line.data(), line.size()) < 0) std::abort();
}

// The number behind `what`; `otherwise` without it.
std::uint64_t number_behind(std::string_view text, std::string_view what, std::uint64_t otherwise) {
  const std::size_t at = text.find(what);
  if (at == std::string_view::npos) return otherwise;
  text.remove_prefix(at + what.size());
  while (text.starts_with(' ')) text.remove_prefix(1);
  std::uint64_t value = otherwise;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

bool is_true(std::string_view body, std::string_view member) {
  const std::size_t at = body.find(member);
  if (at == std::string_view::npos) return false;
  std::string_view value = body.substr(at + member.size());
  while (value.starts_with(' ')) value.remove_prefix(1);
  return value.starts_with("true");
}

struct Connection {
  int file = -1;
  std::string in;
  const MockAnswer* answer = nullptr;  // being sent
  std::size_t sent = 0;
  std::size_t allowed = 0;
  std::size_t next_stop = 0;
  std::uint64_t pace_us = 0;
  std::int64_t due_us = 0;
  std::uint64_t number = 0;
  bool waits_for_room = false;
};

class Mock {
 public:
  explicit Mock(Settings settings);
  [[noreturn]] void run();

 private:
  void watch(int file, std::uint32_t events, int operation) const;
  void accept_at(int listener);
  void read(Connection& connection);
  void serve(Connection& connection);
  void generate(Connection& connection, std::string_view body);
  void record(std::string_view body) const;
  void send_status(Connection& connection, std::string_view target) const;
  void flush(Connection& connection);
  void close(Connection& connection);
  void at_time();
  void arm();

  Settings settings_;
  MockAnswers answers_;
  int poll_ = ::epoll_create1(EPOLL_CLOEXEC);
  int timer_ = ::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
  std::vector<int> listeners_;
  std::vector<std::unique_ptr<Connection>> connections_;  // by descriptor
  std::set<std::pair<std::int64_t, int>> due_;
  std::int64_t ready_us_ = 0;
  bool ready_ = false;
  std::uint64_t requests_ = 0;
  std::vector<char> buffer_ = std::vector<char>(65536);
};

int listen_unix(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  const int file = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const auto* generic = reinterpret_cast<const sockaddr*>(&address);
  const bool listens = ::bind(file, generic, sizeof address) == 0 && ::listen(file, 1024) == 0;
  return listens ? file : -1;
}

int listen_tcp(std::uint16_t& port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  const int file = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const bool listens = ::bind(file, generic, size) == 0 && ::listen(file, 1024) == 0;
  ::getsockname(file, generic, &size);
  port = ntohs(address.sin_port);
  return listens ? file : -1;
}

Mock::Mock(Settings settings) : settings_(std::move(settings)), answers_(settings_.alias) {
  listeners_.push_back(listen_unix(settings_.socket));
  std::uint16_t port = 0;
  if (settings_.tcp) listeners_.push_back(listen_tcp(port));
  for (const int listener : listeners_) {
    if (listener < 0) {
      fmt::print(stderr, "bench_mock: can't listen at {}\n", settings_.socket);
      std::exit(1);
    }
    watch(listener, EPOLLIN, EPOLL_CTL_ADD);
  }
  watch(timer_, EPOLLIN, EPOLL_CTL_ADD);
  tell(settings_, "spawned", port);
  ready_us_ = steady_us() + settings_.ready_ms * 1000;
  arm();
}

void Mock::watch(int file, std::uint32_t events, int operation) const {
  epoll_event event{};
  event.events = events;
  event.data.fd = file;
  ::epoll_ctl(poll_, operation, file, &event);
}

void Mock::arm() {
  std::int64_t next = ready_ ? 0 : std::max<std::int64_t>(ready_us_, 1);
  if (!due_.empty() && (next == 0 || due_.begin()->first < next)) next = due_.begin()->first;
  itimerspec when{};
  when.it_value.tv_sec = next / 1'000'000;
  when.it_value.tv_nsec = next % 1'000'000 * 1000;
  ::timerfd_settime(timer_, TFD_TIMER_ABSTIME, &when, nullptr);
}

void Mock::at_time() {
  std::uint64_t expirations = 0;
  if (::read(timer_, &expirations, sizeof expirations) < 0) return;
  const std::int64_t now = steady_us();
  if (!ready_ && now >= ready_us_) {
    ready_ = true;
    tell(settings_, "ready", 0);
  }
  while (!due_.empty() && due_.begin()->first <= now) {
    Connection& connection = *connections_[static_cast<std::size_t>(due_.begin()->second)];
    due_.erase(due_.begin());
    connection.allowed = connection.answer->stops[connection.next_stop++];
    if (connection.next_stop < connection.answer->stops.size()) {
      connection.due_us += static_cast<std::int64_t>(connection.pace_us);
      due_.insert({connection.due_us, connection.file});
    }
    flush(connection);
  }
  arm();
}

void Mock::run() {
  std::array<epoll_event, 64> events;
  while (true) {
    const int count = ::epoll_wait(poll_, events.data(), events.size(), -1);
    for (int i = 0; i < count; ++i) {
      const epoll_event& event = events[static_cast<std::size_t>(i)];
      const int file = event.data.fd;
      if (file == timer_) {
        at_time();
      } else if (std::ranges::find(listeners_, file) != listeners_.end()) {
        accept_at(file);
      } else if (connections_[static_cast<std::size_t>(file)] != nullptr) {
        Connection& connection = *connections_[static_cast<std::size_t>(file)];
        if ((event.events & EPOLLOUT) != 0) flush(connection);
        if ((event.events & ~static_cast<std::uint32_t>(EPOLLOUT)) != 0) read(connection);
      }
    }
  }
}

void Mock::accept_at(int listener) {
  const int file = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (file < 0) return;
  const int on = 1;
  ::setsockopt(file, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  const auto place = static_cast<std::size_t>(file);
  if (connections_.size() <= place) connections_.resize(place + 64);
  connections_[place] = std::make_unique<Connection>();
  connections_[place]->file = file;
  watch(file, EPOLLIN, EPOLL_CTL_ADD);
}

void Mock::close(Connection& connection) {
  if (connection.answer != nullptr && settings_.tells_calls) {
    tell(settings_, "closed", connection.number);
  }
  due_.erase({connection.due_us, connection.file});
  ::close(connection.file);
  connections_[static_cast<std::size_t>(connection.file)].reset();
}

void Mock::read(Connection& connection) {
  const ssize_t got = ::recv(connection.file, buffer_.data(), buffer_.size(), 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) return close(connection);
  connection.in.append(buffer_.data(), static_cast<std::size_t>(got));
  if (connection.answer == nullptr) serve(connection);
}

void Mock::serve(Connection& connection) {
  const std::string_view in = connection.in;
  const std::size_t end = in.find("\r\n\r\n");
  if (end == std::string_view::npos) return;
  const std::string_view head = in.substr(0, end);
  const std::uint64_t length =
      number_behind(head, "\r\nContent-Length:", number_behind(head, "\r\ncontent-length:", 0));
  if (in.size() < end + 4 + length) return;
  const std::string_view body = in.substr(end + 4, length);
  if (head.starts_with("POST")) {
    generate(connection, body);
  } else {
    const std::string_view target = head.substr(head.find(' ') + 1);
    send_status(connection, target.substr(0, target.find(' ')));
  }
  connection.in.erase(0, end + 4 + length);
  flush(connection);
}

void Mock::generate(Connection& connection, std::string_view body) {
  MockShape shape;
  shape.tokens = number_behind(body, "\"max_tokens\":", 8);
  shape.stream = is_true(body, "\"stream\":");
  shape.usage = is_true(body, "\"include_usage\":");
  shape.progress = is_true(body, "\"return_progress\":");
  connection.answer = &answers_.of(shape);
  connection.sent = 0;
  connection.number = ++requests_;
  connection.allowed = connection.answer->bytes.size();
  connection.pace_us = number_behind(body, "[pace_us=", 0);
  if (settings_.tells_calls) tell(settings_, "request", connection.number);
  if (settings_.record >= 0) record(body);
  if (body.find("[hold=prefill]") != std::string_view::npos) {
    connection.allowed = connection.answer->stops[0];
  } else if (connection.pace_us > 0 && connection.answer->stops.size() > 2) {
    connection.allowed = connection.answer->stops[1];
    connection.next_stop = 2;
    connection.due_us = steady_us() + static_cast<std::int64_t>(connection.pace_us);
    due_.insert({connection.due_us, connection.file});
    arm();
  }
}

void Mock::record(std::string_view body) const {
  const std::string line = std::string(body) + '\n';
  if (::write(settings_.record, line.data(), line.size()) < 0) std::abort();
}

void Mock::send_status(Connection& connection, std::string_view target) const {
  int status = 200;
  std::string body = "{}";
  if (target == "/health") {
    status = ready_ ? 200 : 503;
    body = ready_
               ? R"({"status":"ok"})"
               : R"({"error":{"code":503,"message":"Loading model","type":"unavailable_error"}})";
  } else if (target == "/v1/models") {
    body = fmt::format(R"({{"object":"list","data":[{{"id":"{}","object":"model"}}]}})",
                       settings_.alias);
  } else if (target == "/props") {
    body = fmt::format(
        R"({{"default_generation_settings":{{"n_ctx":{}}},"total_slots":{},)"
        R"("modalities":{{"vision":false}},"chat_template_caps":{{"supports_tools":true}}}})",
        settings_.context / settings_.slots, settings_.slots);
  } else if (target == "/slots") {
    body = R"([{"id":0,"is_processing":false}])";
  }
  const std::string text =
      fmt::format("HTTP/1.1 {} X\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{}",
                  status, body.size(), body);
  if (::send(connection.file, text.data(), text.size(), MSG_NOSIGNAL) < 0) return;
}

void Mock::flush(Connection& connection) {
  if (connection.answer == nullptr) return;
  const std::string& bytes = connection.answer->bytes;
  while (connection.sent < connection.allowed) {
    const ssize_t sent = ::send(connection.file, bytes.data() + connection.sent,
                                connection.allowed - connection.sent, MSG_NOSIGNAL);
    if (sent < 0) break;  // no room, or the peer is gone, which the next read tells
    connection.sent += static_cast<std::size_t>(sent);
  }
  const bool full = connection.sent < connection.allowed;
  if (full != connection.waits_for_room) {
    connection.waits_for_room = full;
    watch(connection.file, full ? EPOLLIN | EPOLLOUT : EPOLLIN, EPOLL_CTL_MOD);
  }
  if (connection.sent < bytes.size()) return;
  connection.answer = nullptr;
  if (!connection.in.empty()) serve(connection);
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

Settings read_settings(const std::vector<std::string>& words) {
  Settings settings;
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    const std::string& value = words[i + 1];
    if (words[i] == "--host") settings.socket = value;
    if (words[i] == "--alias") settings.alias = value;
    if (words[i] == "-np") settings.slots = std::stoull(value);
    if (words[i] == "-c") settings.context = std::stoull(value);
  }
  settings.ready_ms = std::atol(variable("BENCH_MOCK_READY_MS").c_str());
  settings.tcp = variable("BENCH_MOCK_TCP") == "1";
  settings.tells_calls = variable("BENCH_MOCK_TELL") == "1";
  const std::string pipe = variable("BENCH_MOCK_EVENTS");
  if (!pipe.empty()) settings.events = ::open(pipe.c_str(), O_WRONLY | O_CLOEXEC);
  const std::string record = variable("BENCH_MOCK_RECORD");
  if (!record.empty()) {
    settings.record = ::open(record.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  }
  return settings;
}

int main_with(const std::vector<std::string>& words) {
  const auto has = [&words](std::string_view word) {
    return std::ranges::find(words, word) != words.end();
  };
  if (has("--version")) {
    fmt::print("version: 0.5.0 (build 1, commit de3ff81)\nbuilt with GNU 12.2.0 for Linux\n");
    return 0;
  }
  if (has("--help")) {
    fmt::print("{}", kHelp);
    return 0;
  }
  if (has("--list-devices")) {
    fmt::print("Available devices:\n  (none)\n");
    return 0;
  }
  ::signal(SIGTERM, [](int) { ::_exit(0); });
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  Mock(read_settings(words)).run();
}

}  // namespace
}  // namespace werk::bench

int main(int count, char** words) {
  return werk::bench::main_with(std::vector<std::string>(words + 1, words + count));
}
