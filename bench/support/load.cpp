#include "bench/support/load.hpp"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <stdexcept>

namespace werk::bench {
namespace {

constexpr std::size_t kBufferBytes = 256 * 1024;
constexpr int kWatchdogMs = 60'000;

// Behind `what` in the text; none if it isn't there.
std::string_view behind(std::string_view text, std::string_view what) {
  const void* at = ::memmem(text.data(), text.size(), what.data(), what.size());
  if (at == nullptr) return {};
  const auto offset = static_cast<std::size_t>(static_cast<const char*>(at) - text.data());
  return text.substr(offset + what.size());
}

}  // namespace

std::uint64_t hash_more(std::uint64_t hash, std::string_view text) {
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

void TextReader::line(std::string_view text) {
  if (text.starts_with("event: ")) return;
  const bool messages = dialect_ == Dialect::messages;
  std::string_view content = behind(text, messages ? "\"text\":\"" : "\"content\":\"");
  std::size_t end = 0;
  while (end < content.size() && content[end] != '"') end += content[end] == '\\' ? 2 : 1;
  if (end > 0) {
    ++events_;
    hash_ = hash_more(hash_, content.substr(0, end));
    if (text.starts_with("data: ")) return;
  }
  const std::string_view tokens =
      behind(text, messages ? "\"output_tokens\":" : "\"completion_tokens\":");
  std::from_chars(tokens.data(), tokens.data() + tokens.size(), tokens_);
}

void TextReader::read(std::string& body, More more) {
  std::string_view rest = body;
  while (!rest.empty()) {
    std::size_t end = rest.find('\n');
    if (end == std::string_view::npos) {
      if (more == More::comes) break;
      end = rest.size() - 1;
    }
    line(rest.substr(0, end + 1));
    rest.remove_prefix(end + 1);
  }
  body.erase(0, body.size() - rest.size());
}

Load::Load(LoadPlan plan)
    : plan_(std::move(plan)), poll_(::epoll_create1(EPOLL_CLOEXEC)), buffer_(kBufferBytes) {
  connections_.resize(plan_.clients.empty() ? plan_.connections : plan_.clients.size());
  for (std::size_t i = 0; i < connections_.size(); ++i) {
    connections_[i].index = i;
    open(connections_[i]);
  }
}

Load::~Load() {
  for (const Connection& connection : connections_) ::close(connection.file);
  ::close(poll_);
}

void Load::open(Connection& connection) {
  if (connection.file >= 0) ::close(connection.file);
  connection.file = connect_to(endpoint_of(connection), Blocking::no);
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = connection.index;
  ::epoll_ctl(poll_, EPOLL_CTL_ADD, connection.file, &event);
}

const Endpoint& Load::endpoint_of(const Connection& connection) const {
  return plan_.clients.empty() ? plan_.endpoint : plan_.clients[connection.index].endpoint;
}

const std::string& Load::begin_request(Connection& connection) const {
  if (plan_.clients.empty()) {
    connection.text = TextReader(plan_.dialect);
    return plan_.requests[(connection.index + connection.asked) % plan_.requests.size()];
  }
  const std::vector<LoadRequest>& own = plan_.clients[connection.index].requests;
  const LoadRequest& request = own[connection.asked % own.size()];
  connection.text = TextReader(request.dialect);
  return request.bytes;
}

LoadResult Load::run_for(std::chrono::milliseconds length) {
  return run(UINT64_MAX, steady_now() + length);
}

LoadResult Load::run_times(std::uint64_t requests_per_connection) {
  return run(requests_per_connection, SteadyTime::max());
}

LoadResult Load::run(std::uint64_t requests_per_connection, SteadyTime until) {
  result_ = {};
  result_.tokens_of.resize(connections_.size());
  until_ = until;
  const SteadyTime begun = steady_now();
  for (Connection& connection : connections_) {
    connection.left = requests_per_connection;
    connection.retried = false;
    go_on(connection);
  }
  std::array<epoll_event, 64> events;
  while (busy_ > 0) {
    const int count = ::epoll_wait(poll_, events.data(), events.size(), kWatchdogMs);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) throw std::runtime_error("a server was silent for a minute");
    for (int i = 0; i < count; ++i) {
      receive(connections_[events[static_cast<std::size_t>(i)].data.u64]);
    }
  }
  result_.seconds = microseconds_between(begun, steady_now()) / 1e6;
  return std::move(result_);
}

void Load::go_on(Connection& connection) {
  if (connection.left == 0 || steady_now() >= until_) return;
  --connection.left;
  ++busy_;
  connection.busy = true;
  send(connection);
}

void Load::send(Connection& connection) {
  connection.reader.reset();
  connection.body.clear();
  connection.first_us = 0;
  const std::string& request = begin_request(connection);
  connection.sent = steady_now();
  const ssize_t sent = ::send(connection.file, request.data(), request.size(), MSG_NOSIGNAL);
  // A request is far smaller than a socket's buffer; what fails is a connection that was closed.
  if (sent == static_cast<ssize_t>(request.size())) return;
  open(connection);
  if (::send(connection.file, request.data(), request.size(), MSG_NOSIGNAL) < 0) {
    throw std::runtime_error("can't send");
  }
}

void Load::receive(Connection& connection) {
  const ssize_t got = ::recv(connection.file, buffer_.data(), buffer_.size(), 0);
  // Reading what came takes longer the more came at once: that is this client's time, no server's.
  const SteadyTime arrived = steady_now();
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) {
    const bool again = connection.busy && !connection.retried && !connection.reader.started();
    open(connection);
    if (again) {  // an idle connection that the server closed as the request was on its way
      connection.retried = true;
      return send(connection);
    }
    if (connection.busy) fail(connection, "the connection was closed in mid-answer");
    return;
  }
  connection.reader.feed({buffer_.data(), static_cast<std::size_t>(got)}, connection.body);
  const bool done = connection.reader.done();
  connection.text.read(connection.body, done ? TextReader::More::ended : TextReader::More::comes);
  if (connection.first_us == 0 && connection.text.events() > 0) {
    connection.first_us = microseconds_between(connection.sent, arrived);
  }
  if (done) finish(connection, arrived);
}

void Load::finish(Connection& connection, SteadyTime arrived) {
  const double whole_us = microseconds_between(connection.sent, arrived);
  const bool other_text = plan_.expected_hash != 0 && connection.text.hash() != plan_.expected_hash;
  if (!connection.reader.keeps_alive()) open(connection);
  if (connection.reader.status() != 200 || other_text) {
    const std::string why = fmt::format("status {}{}", connection.reader.status(),
                                        other_text ? ", and not the expected text" : "");
    return fail(connection, why);
  }
  ++result_.answers;
  result_.events += connection.text.events();
  result_.tokens += connection.text.tokens();
  result_.tokens_of[connection.index] += connection.text.tokens();
  result_.whole_us.push_back(whole_us);
  result_.first_us.push_back(connection.first_us);
  connection.busy = false;
  connection.retried = false;
  --busy_;
  ++connection.asked;
  go_on(connection);
}

void Load::fail(Connection& connection, std::string_view why) {
  ++result_.failures;
  if (result_.first_failure.empty()) result_.first_failure = why;
  if (result_.failures > 1000) throw std::runtime_error("too many failures: " + std::string(why));
  connection.busy = false;
  --busy_;
  ++connection.asked;
  go_on(connection);
}

}  // namespace werk::bench
