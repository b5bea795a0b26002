#include "bench/support/script_engine.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <stdexcept>

namespace werk::bench {

ScriptEngine::ScriptEngine(const EngineHandle& like, const std::filesystem::path& socket,
                           std::vector<std::string> environment, const std::filesystem::path& log)
    : socket_(socket.string()), health_request_(http_request("GET", "/health", "", like.key)) {
  ::unlink(socket_.c_str());  // an engine refuses to bind where a file lies
  std::vector<std::string> words = like.words;
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    if (words[i] == "--host") words[i + 1] = socket_;
  }
  environment.push_back("LLAMA_API_KEY=" + like.key);
  child_ = std::make_unique<Child>(std::move(words), environment, log);
}

bool ScriptEngine::ready() const { return ask(endpoint(), health_request_).status == 200; }

void ScriptEngine::wait_ready() {
  const auto looks = [this] {
    if (!child_->running()) throw std::runtime_error("an engine ended:\n" + child_->log_text());
    return ready();
  };
  if (!wait_until(looks, std::chrono::seconds(60))) throw std::runtime_error("never ready");
}

void ScriptEngine::stop() { child_->stop(SIGTERM); }

SteadyTime first_text(const Endpoint& endpoint, const std::string& request) {
  const int file = connect_to(endpoint, Blocking::yes);
  std::array<char, 65536> buffer;
  std::string body;
  ResponseReader reader;
  TextReader text;
  SteadyTime first;
  bool open = ::send(file, request.data(), request.size(), MSG_NOSIGNAL) > 0;
  while (open && !reader.done()) {
    const ssize_t got = ::recv(file, buffer.data(), buffer.size(), 0);
    open = got > 0;
    if (open) reader.feed({buffer.data(), static_cast<std::size_t>(got)}, body);
    const bool had_text = text.events() > 0;
    if (reader.status() == 200) text.read(body, TextReader::More::comes);
    if (!had_text && text.events() > 0) first = steady_now();
  }
  ::close(file);
  if (!reader.done() || reader.status() != 200 || text.events() == 0) {
    throw std::runtime_error(fmt::format("no answer: status {} {}", reader.status(), body));
  }
  return first;
}

}  // namespace werk::bench
