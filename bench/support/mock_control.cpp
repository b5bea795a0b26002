#include "bench/support/mock_control.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <sstream>
#include <stdexcept>

#include "bench/support/load.hpp"

namespace werk::bench {
namespace {

constexpr int kWatchdogMs = 60'000;

}  // namespace

MockEvents::MockEvents(std::filesystem::path pipe) : pipe_(std::move(pipe)) {
  // Open for both, so that it never ends when the last mock does.
  if (::mkfifo(pipe_.c_str(), 0600) == 0) {
    file_ = ::open(pipe_.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK);
  }
  if (file_ < 0) throw std::runtime_error("no pipe for the mock's events");
}

MockEvents::~MockEvents() { ::close(file_); }

void MockEvents::read(int wait_ms) {
  pollfd watched{file_, POLLIN, 0};
  if (::poll(&watched, 1, wait_ms) <= 0) return;
  std::array<char, 65536> buffer;
  const ssize_t got = ::read(file_, buffer.data(), buffer.size());
  if (got <= 0) return;
  pending_.append(buffer.data(), static_cast<std::size_t>(got));
  for (std::size_t end = pending_.find('\n'); end != std::string::npos; end = pending_.find('\n')) {
    MockEvent event;
    std::istringstream(pending_.substr(0, end)) >> event.name >> event.pid >> event.at_us >>
        event.number;
    events_.push_back(std::move(event));
    pending_.erase(0, end + 1);
  }
}

MockEvent MockEvents::expect(std::string_view name) {
  const SteadyTime limit = steady_now() + std::chrono::milliseconds(kWatchdogMs);
  while (true) {
    while (!events_.empty()) {
      MockEvent event = std::move(events_.front());
      events_.pop_front();
      if (event.name == name) return event;
    }
    if (steady_now() >= limit) {
      throw std::runtime_error(fmt::format("no mock told '{}'", name));
    }
    read(100);
  }
}

std::vector<MockEvent> MockEvents::take_all() {
  read(0);
  std::vector<MockEvent> all(events_.begin(), events_.end());
  events_.clear();
  return all;
}

std::int64_t steady_us() {
  return std::chrono::duration_cast<std::chrono::microseconds>(steady_now().time_since_epoch())
      .count();
}

std::string mock_body(Dialect dialect, std::string_view model, Audience audience,
                      const MockOrder& order) {
  std::string prompt = "Write a short poem about the sea.";
  if (order.pace_us > 0) prompt += fmt::format(" [pace_us={}]", order.pace_us);
  if (!order.hold.empty()) prompt += fmt::format(" [hold={}]", order.hold);
  std::string body =
      fmt::format(R"({{"model":"{}","max_tokens":{},"temperature":0)", model, order.tokens);
  if (dialect == Dialect::messages) {
    body += fmt::format(
        R"(,"system":"You are brief.","messages":[{{"role":"user","content":"{}"}}])", prompt);
  } else {
    body += fmt::format(R"(,"seed":7,"messages":[{{"role":"system","content":"You are brief."}},)"
                        R"({{"role":"user","content":"{}"}}])",
                        prompt);
  }
  if (audience == Audience::node_stream) body += R"(,"stream":true)";
  if (audience == Audience::engine) {
    body += R"(,"stream":true,"stream_options":{"include_usage":true},"return_progress":true)";
  }
  return body + "}";
}

std::string mock_request(Dialect dialect, std::string_view model, Audience audience,
                         const MockOrder& order, std::string_view key) {
  return http_request("POST", target_of(dialect), mock_body(dialect, model, audience, order), key);
}

std::string mock_word(std::uint64_t index) { return fmt::format("word{} ", index % 1000); }

std::uint64_t mock_text_hash(std::uint64_t tokens) {
  std::uint64_t hash = kHashStart;
  for (std::uint64_t i = 0; i < tokens; ++i) hash = hash_more(hash, mock_word(i));
  return hash;
}

}  // namespace werk::bench
