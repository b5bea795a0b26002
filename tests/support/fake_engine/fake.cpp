#include "tests/support/fake_engine/fake.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "tests/support/fake_engine/generation.hpp"
#include "tests/support/fake_engine/vllm.hpp"

namespace werk::fake {

namespace {

constexpr std::size_t kToldBytesMax = 1024 * 1024;

void wake(const Call& call) { ::eventfd_write(call.wake, 1); }

std::string error_body(unsigned status, std::string_view type, std::string_view message) {
  json::object error{{"code", status}, {"message", message}, {"type", type}};
  return json::serialize(json::object{{"error", std::move(error)}});
}

bool is_generation(const Request& request) {
  const std::string path = request.path();
  const bool chat = path == "/v1/chat/completions" || path == "/chat/completions";
  return chat && request.method == "POST";
}

}  // namespace

Fake::Fake(CommandLine line, Settings settings, Channel& channel)
    : line_(std::move(line)), channel_(channel), settings_(std::move(settings)) {}

Settings Fake::settings() {
  const std::lock_guard lock(mutex_);
  return settings_;
}

std::string Fake::model_name() {
  const Settings now = settings();
  if (!now.alias.empty()) return now.alias;
  return line_.alias.empty() ? line_.model : line_.alias;
}

void Fake::serve(const Listener& listener) {
  {
    const std::lock_guard lock(mutex_);
    address_ = listener.address;
  }
  channel_.tell("listening", {{"address", listener.address}});
  if (settings().start != "hold") become_ready();
  while (true) {
    const int file = ::accept4(listener.file, nullptr, nullptr, SOCK_CLOEXEC);
    if (file >= 0) std::thread([this, file] { attend(file); }).detach();
  }
}

void Fake::become_ready() {
  {
    const std::lock_guard lock(mutex_);
    if (ready_) return;
    ready_ = true;
    std::fprintf(stderr, "0.00.246.066 I srv  llama_server: model loaded\n");
    std::fprintf(stderr, "0.00.246.076 I srv  llama_server: listening on %s\n", address_.c_str());
  }
  became_ready_.notify_all();
  channel_.tell("ready");
}

void Fake::wait_until_ready() {
  std::unique_lock lock(mutex_);
  became_ready_.wait(lock, [this] { return ready_; });
}

void Fake::attend_core(pid_t core) {
  wait_for_core(core);
  {
    const std::lock_guard lock(mutex_);
    core_dead_ = true;
    for (const Call* call : calls_) wake(*call);
  }
  channel_.tell("core_died");
}

bool Fake::core_is_dead() {
  const std::lock_guard lock(mutex_);
  return core_dead_;
}

void Fake::attend(int file) {
  Connection connection(file);
  for (std::uint64_t served = 0;; ++served) {
    {
      const std::lock_guard lock(mutex_);
      if (served > 0 && served >= settings_.requests_per_connection) return;
      idle_.insert(file);
    }
    const std::optional<Request> request = connection.read_request();
    std::uint64_t id = 0;
    {
      const std::lock_guard lock(mutex_);
      idle_.erase(file);
      id = ++requests_;
    }
    if (!request || answer(connection, *request, id) == Then::close) return;
  }
}

Fake::Then Fake::answer(Connection& connection, const Request& request, std::uint64_t id) {
  const bool ready = [this] {
    const std::lock_guard lock(mutex_);
    return ready_;
  }();
  const std::string path = request.path();
  if (ready && is_generation(request) && has_key(request) && !core_is_dead()) {
    return answer_generation(connection, request, id);
  }
  connection.finish_body();
  tell_request(request, id, 0);
  if (!ready) {
    return send_error(connection, 503, "unavailable_error", "Loading model", request);
  }
  if (line_.is_vllm) return answer_as_vllm(connection, request, settings());
  if (path != "/health" && path != "/v1/health" && !has_key(request)) {
    return send_error(connection, 401, "authentication_error", "Invalid API Key", request);
  }
  const Settings now = settings();
  if (const json::value* told = now.statuses.if_contains(path); told != nullptr) {
    const json::object& answer = told->as_object();
    const auto status = static_cast<unsigned>(number_member(answer, "status", 200));
    return send_json(connection, status, text_member(answer, "body"), request);
  }
  const bool get = request.method == "GET" || request.method == "HEAD";
  if (get && (path == "/health" || path == "/v1/health")) {
    return send_json(connection, 200, R"({"status":"ok"})", request);
  }
  if (get && path == "/props") return send_json(connection, 200, props(), request);
  if (get && path == "/slots") return send_json(connection, 200, slots(), request);
  if (get && path == "/v1/models") return send_json(connection, 200, models(), request);
  if (!get && path == "/v1/chat/completions/input_tokens") {
    const std::string count = std::to_string(now.reply.prompt_tokens);
    std::string body = R"({"input_tokens":)" + count;
    body += R"(,"object":"response.input_tokens"})";
    return send_json(connection, 200, body, request);
  }
  if (!get && path == "/tokenize") {
    return send_json(connection, 200, R"({"tokens":[36218,15876]})", request);
  }
  return send_error(connection, 404, "not_found_error", "File Not Found", request);
}

// The key guards what is below /v1 alone.
Fake::Then Fake::answer_as_vllm(Connection& connection, const Request& request,
                                const Settings& now) {
  const std::string path = request.path();
  if (path.starts_with("/v1") && !has_key(request))
    return send_json(connection, 401, R"({"error":"Unauthorized"})", request);
  if (const json::value* told = now.statuses.if_contains(path); told != nullptr) {
    const json::object& answer = told->as_object();
    const auto status = static_cast<unsigned>(number_member(answer, "status", 200));
    return send_json(connection, status, text_member(answer, "body"), request);
  }
  if (is_generation(request)) return send_json(connection, 500, core_error(), request);
  const Core core = core_is_dead() ? Core::dead : Core::alive;
  const auto answer = vllm_status(request, model_name(), now, core);
  if (answer) return send_json(connection, answer->status, answer->body, request);
  return send_json(connection, 404, R"({"detail":"Not Found"})", request);
}

Fake::Then Fake::answer_generation(Connection& connection, const Request& request,
                                   std::uint64_t id) {
  Call call;
  call.id = id;
  call.wake = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  {
    // Told under the mutex, so that the events' order is that of the numbers in them.
    const std::lock_guard lock(mutex_);
    calls_.push_back(&call);
    const std::uint64_t open = open_locked();
    open_max_ = std::max(open_max_, open);
    tell_request(request, id, open);
  }
  Generation generation(*this, call, connection, request);
  const Generation::Ended ended = generation.run();
  if (ended == Generation::Ended::left && settings().busy_after_close) {
    wait(call, nullptr, [&call] { return call.releases > 0 || call.finished; });
  }
  {
    const std::lock_guard lock(mutex_);
    std::erase(calls_, &call);
  }
  ::close(call.wake);
  return ended == Generation::Ended::whole && request.keep_alive ? Then::keep : Then::close;
}

Fake::Then Fake::send_json(Connection& connection, unsigned status, const std::string& body,
                           const Request& request) {
  const bool keep = status < 400 && request.keep_alive;
  std::string bytes = fmt::format(
      "HTTP/1.1 {}\r\nServer: llama.cpp\r\nContent-Type: application/json; charset=utf-8\r\n"
      "Content-Length: {}\r\n{}\r\n\r\n",
      status_text(status), body.size(),
      keep ? "Keep-Alive: timeout=5, max=100" : "Connection: close");
  if (request.method != "HEAD") bytes += body;
  return connection.write(bytes, 0) && keep ? Then::keep : Then::close;
}

Fake::Then Fake::send_error(Connection& connection, unsigned status, std::string_view type,
                            std::string_view message, const Request& request) {
  return send_json(connection, status, error_body(status, type, message), request);
}

bool Fake::has_key(const Request& request) const {
  if (line_.api_keys.empty()) return true;
  std::string key = request.header("authorization");
  if (key.starts_with("Bearer ")) key.erase(0, 7);
  if (key.empty()) key = request.header("x-api-key");
  return std::ranges::find(line_.api_keys, key) != line_.api_keys.end();
}

void Fake::tell_request(const Request& request, std::uint64_t id, std::uint64_t open) {
  if (!channel_.open()) return;
  json::object headers;
  for (const auto& [name, value] : request.headers) headers[name] = value;
  channel_.tell("request", {{"request", id},
                            {"method", request.method},
                            {"target", request.target},
                            {"headers", std::move(headers)},
                            {"body", request.body.substr(0, kToldBytesMax)},
                            {"body_bytes", request.body.size()},
                            {"generation", open > 0},
                            {"open", open}});
}

Reply Fake::planned_reply() {
  const std::lock_guard lock(mutex_);
  Reply reply = settings_.reply;
  if (generations_ < settings_.replies.size()) merge(reply, settings_.replies[generations_]);
  ++generations_;
  return reply;
}

json::object Fake::orders_of(Call& call) {
  const std::lock_guard lock(mutex_);
  return call.orders;
}

Fake::Waited Fake::wait(Call& call, const Connection* connection,
                        const std::function<bool()>& condition) {
  while (true) {
    {
      const std::lock_guard lock(mutex_);
      if (call.dropped) return Waited::dropped;
      if (core_dead_) return Waited::core_died;
      if (condition()) return Waited::fulfilled;
    }
    std::array<pollfd, 2> files{{{call.wake, POLLIN, 0}, {-1, POLLRDHUP, 0}}};
    if (connection != nullptr) files[1].fd = connection->file();
    ::poll(files.data(), files.size(), -1);
    if (files[1].revents != 0) return Waited::gone;
    eventfd_t count = 0;
    ::eventfd_read(call.wake, &count);
  }
}

Fake::Waited Fake::wait_at_barrier(Call& call, const Connection& connection) {
  {
    const std::lock_guard lock(mutex_);
    if (settings_.hold_until == 0) return Waited::fulfilled;
    call.in_barrier = true;
    const auto waiting = [](const Call* other) { return other->in_barrier; };
    const auto arrived = static_cast<std::uint64_t>(std::ranges::count_if(calls_, waiting));
    if (arrived >= settings_.hold_until) {
      for (Call* other : calls_) {
        if (!other->in_barrier) continue;
        other->in_barrier = false;
        other->through_barrier = true;
        wake(*other);
      }
    }
  }
  const auto through = [&call] { return call.through_barrier || call.finished; };
  const Waited waited = wait(call, &connection, through);
  const std::lock_guard lock(mutex_);
  call.in_barrier = false;
  return waited;
}

void Fake::leave(Call& call) {
  const std::lock_guard lock(mutex_);
  call.open = false;
}

std::uint64_t Fake::open_locked() const {
  const auto is_open = [](const Call* call) { return call->open; };
  return static_cast<std::uint64_t>(std::ranges::count_if(calls_, is_open));
}

void Fake::obey(const json::object& command) {
  const std::string what = text_member(command, "do");
  if (what == "ready") return become_ready();
  if (what == "exit") {
    end(static_cast<int>(number_member(command, "code", 0)), text_member(command, "stderr"));
  }
  if (what == "kill_self") {
    ::kill(::getpid(), static_cast<int>(number_member(command, "signal", SIGKILL)));
  }
  if (what == "print") {
    std::fputs(text_member(command, "text").c_str(), stderr);
    channel_.tell("printed");
  }
  if (what == "set") {
    {
      const std::lock_guard lock(mutex_);
      merge(settings_, command);
    }
    channel_.tell("set");
  }
  if (what == "report") report();
  if (what == "close_idle") close_idle();
  if (command.contains("request")) order(command);
}

void Fake::order(const json::object& command) {
  const std::string what = text_member(command, "do");
  const std::uint64_t id = number_member(command, "request", 0);
  const std::lock_guard lock(mutex_);
  for (Call* call : calls_) {
    if (call->id != id) continue;
    if (what == "reply") call->orders = command;
    if (what == "reply" || what == "release") ++call->releases;
    if (what == "step") call->steps += number_member(command, "count", 1);
    if (what == "finish") call->finished = true;
    if (what == "drop") call->dropped = true;
    wake(*call);
  }
}

void Fake::report() {
  json::object members;
  {
    const std::lock_guard lock(mutex_);
    members = {{"open", open_locked()}, {"open_max", open_max_}, {"requests", requests_}};
  }
  channel_.tell("report", std::move(members));
}

void Fake::close_idle() {
  std::size_t closed = 0;
  {
    const std::lock_guard lock(mutex_);
    closed = idle_.size();
    for (const int file : idle_) ::shutdown(file, SHUT_RDWR);
  }
  channel_.tell("idle_closed", {{"connections", closed}});
}

void Fake::terminate() {
  const bool ignored = settings().ignore_term;
  channel_.tell("term", {{"ignored", ignored}});
  if (!ignored) end(0, "");
}

void Fake::end(int code, const std::string& text) {
  std::fputs(text.c_str(), stderr);
  std::uint64_t open_max = 0;
  {
    const std::lock_guard lock(mutex_);
    open_max = open_max_;
  }
  channel_.tell("exiting", {{"code", code}, {"open_max", open_max}});
  std::_Exit(code);
}

std::string Fake::props() {
  const Settings now = settings();
  const Sizes sizes = sizes_of(line_, now);
  json::object caps;
  for (const char* name : {"supports_object_arguments", "supports_parallel_tool_calls",
                           "supports_preserve_reasoning", "supports_reasoning_effort"}) {
    caps[name] = false;
  }
  for (const char* name : {"supports_string_content", "supports_system_role"}) caps[name] = true;
  for (const char* name : {"supports_tool_calls", "supports_tools", "supports_typed_content"}) {
    caps[name] = false;
  }
  json::object defaults{{"params", json::object{{"n_predict", -1}}},
                        {"n_ctx", sizes.context_per_slot}};
  json::object props{
      {"default_generation_settings", std::move(defaults)},
      {"total_slots", sizes.slots},
      {"model_alias", model_name()},
      {"model_path", line_.model},
      {"modalities", json::object{{"vision", false}, {"video", false}, {"audio", false}}},
      {"endpoint_slots", true},
      {"endpoint_props", false},
      {"endpoint_metrics", line_.metrics},
      {"ui", false},
      {"chat_template", "{% for message in messages %}{{ message.content }}{% endfor %}"},
      {"chat_template_caps", std::move(caps)},
      {"bos_token", "<|im_start|>"},
      {"eos_token", "<|im_end|>"},
      {"build_info", fmt::format("b{}-{}", now.build, now.commit)},
      {"is_sleeping", false}};
  for (const auto& member : now.props) {
    json::value& there = props[member.key()];
    if (!there.is_object() || !member.value().is_object()) {
      there = member.value();
      continue;
    }
    for (const auto& inner : member.value().get_object()) {
      there.get_object()[inner.key()] = inner.value();
    }
  }
  return json::serialize(props);
}

std::string Fake::slots() {
  const Sizes sizes = sizes_of(line_, settings());
  std::uint64_t busy = 0;
  {
    const std::lock_guard lock(mutex_);
    busy = open_locked();
  }
  json::array slots;
  for (std::uint64_t id = 0; id < sizes.slots; ++id) {
    slots.push_back(json::object{{"id", id},
                                 {"n_ctx", sizes.context_per_slot},
                                 {"speculative", false},
                                 {"is_processing", id < busy}});
  }
  return json::serialize(slots);
}

std::string Fake::models() {
  const Settings now = settings();
  const std::string name = model_name();
  json::object meta{{"n_ctx", sizes_of(line_, now).context_per_slot},
                    {"n_ctx_train", now.n_ctx_train}};
  json::object entry{{"id", name},        {"aliases", json::array{name}},
                     {"tags", json::array()}, {"object", "model"},
                     {"created", 1795993073}, {"owned_by", "llamacpp"},
                     {"meta", std::move(meta)}};
  json::object shown{{"name", name}, {"model", name}, {"type", "model"}};
  return json::serialize(json::object{{"models", json::array{std::move(shown)}},
                                      {"object", "list"},
                                      {"data", json::array{std::move(entry)}}});
}

}  // namespace werk::fake
