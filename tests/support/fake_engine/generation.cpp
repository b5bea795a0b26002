#include "tests/support/fake_engine/generation.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "tests/support/fake_engine/vllm.hpp"

namespace werk::fake {

namespace {

constexpr std::uint64_t kDefaultTokens = 8;

std::string quoted(std::string_view text) { return json::serialize(json::string(text)); }

json::object error_object(unsigned status, std::string_view type, std::string_view message) {
  return {{"code", status}, {"message", message}, {"type", type}};
}

}  // namespace

Generation::Generation(Fake& fake, Call& call, Connection& connection, const Request& request)
    : fake_(fake), call_(call), connection_(connection), request_(request) {}

Generation::Ended Generation::run() {
  reply_ = fake_.planned_reply();
  const auto waited = fake_.wait_at_barrier(call_, connection_);
  if (waited != Fake::Waited::fulfilled) {
    stop(waited == Fake::Waited::gone ? Ended::left : Ended::broken);
  } else if (reply_.hold) {
    fulfil([this] { return call_.releases > 0 || call_.finished; });
    releases_taken_ = 1;
  }
  merge(reply_, fake_.orders_of(call_));
  if (!reply_.death || reply_.death->how != "reset") connection_.finish_body();
  if (ended_ == Ended::whole) {
    if (!reply_.raw.empty()) {
      write(reply_.raw);
      flush();
      stop(Ended::broken);
    } else if (reply_.status != 200) {
      return fail(reply_.status, reply_.error);
    } else if (read_body()) {
      prepare();
      stream_ ? send_events() : send_whole();
    } else {
      return ended_;
    }
  }
  tell_end(ended_ == Ended::left ? "closed" : "answered");
  return ended_;
}

bool Generation::read_body() {
  boost::system::error_code error;
  const json::value value = json::parse(request_.body, error);
  if (error || !value.is_object()) {
    fail(500, error_object(500, "server_error", "[json.exception.parse_error.101] parse error"));
    return false;
  }
  const json::object& body = value.get_object();
  if (!body.contains("messages")) {
    fail(400, error_object(400, "invalid_request_error", "'messages' is required"));
    return false;
  }
  const auto flag = [](const json::object& object, std::string_view name) {
    const json::value* member = object.if_contains(name);
    return member != nullptr && member->is_bool() && member->get_bool();
  };
  stream_ = flag(body, "stream");
  return_progress_ = flag(body, "return_progress");
  if (const json::value* options = body.if_contains("stream_options");
      options != nullptr && options->is_object()) {
    include_usage_ = flag(options->get_object(), "include_usage");
  }
  choices_ = std::max<std::uint64_t>(1, number_member(body, "n", 1));
  const std::uint64_t limit = number_member(
      body, "max_tokens", number_member(body, "max_completion_tokens", UINT64_MAX));
  tokens_ = reply_.tokens.value_or(reply_.content.empty() ? kDefaultTokens : reply_.content.size());
  finish_reason_ = reply_.tool_calls.empty() ? "stop" : "tool_calls";
  if (limit < tokens_) {
    tokens_ = limit;
    finish_reason_ = "length";
  }
  if (!reply_.finish_reason.empty()) finish_reason_ = reply_.finish_reason;
  return true;
}

void Generation::prepare() {
  const Settings settings = fake_.settings();
  chunk_tail_ = fmt::format(
      R"("created":1795993074,"id":"chatcmpl-{}-{}","model":{},)"
      R"("system_fingerprint":"b{}-{}","object":"chat.completion.chunk")",
      ::getpid(), call_.id, quoted(fake_.model_name()), settings.build, settings.commit);
  next_token_ = std::chrono::steady_clock::now();
}

// As plain JSON also for a stream, and the connection is closed.
Generation::Ended Generation::fail(unsigned status, const json::object& error) {
  json::object object = error;
  if (object.empty()) object = error_object(status, "server_error", "it went wrong");
  if (!object.contains("code")) object["code"] = status;
  const std::string body = json::serialize(json::object{{"error", std::move(object)}});
  fake_.leave(call_);
  write(fmt::format("HTTP/1.1 {}\r\nServer: llama.cpp\r\n"
                    "Content-Type: application/json; charset=utf-8\r\nContent-Length: {}\r\n"
                    "Connection: close\r\n\r\n{}",
                    status_text(status), body.size(), body));
  flush();
  stop(Ended::broken);
  tell_end("answered");
  return ended_;
}

bool Generation::send_head() {
  std::string head = fmt::format(
      "HTTP/1.1 200 OK\r\nServer: llama.cpp\r\nX-Accel-Buffering: no\r\n"
      "Content-Type: text/event-stream\r\n{}\r\n",
      reply_.framing == "close" ? "Connection: close" : "Transfer-Encoding: chunked");
  if (reply_.framing != "close") head += "Keep-Alive: timeout=5, max=100\r\n";
  for (const auto& header : reply_.headers) {
    head += fmt::format("{}: {}\r\n", std::string_view(header.key()),
                        std::string_view(header.value().as_string()));
  }
  return write(head + "\r\n");
}

bool Generation::send_events() {
  // The head goes out with the first event, so a call that is held has sent nothing.
  if (!may_go_on(Kind::other) || !send_head()) return false;
  if (!reply_.events.empty()) {
    for (const std::string& data : reply_.events) {
      if (!emit(data, Kind::token)) return false;
    }
    return send_end();
  }
  if (return_progress_) {
    const std::uint64_t steps = std::max<std::uint64_t>(reply_.progress_events, 2) - 1;
    for (std::uint64_t i = 0; i < reply_.progress_events; ++i) {
      const std::uint64_t done = reply_.prompt_tokens * i / steps;
      const std::string progress =
          fmt::format(R"(,"prompt_progress":{{"total":{},"cache":{},"processed":{},"time_ms":{}}})",
                      reply_.prompt_tokens, reply_.cached_tokens, done, i);
      std::string data = chunk(0, R"({"role":"assistant","content":null})", "null");
      data.insert(data.size() - 1, progress);
      if (!emit(data, Kind::other)) return false;
    }
  }
  if (!send_choices()) return false;
  if (include_usage_) {
    const std::string data =
        fmt::format(R"({{"choices":[],{},{}}})", chunk_tail_, usage());
    if (!emit(data, Kind::other)) return false;
  }
  return emit("[DONE]", Kind::other) && send_end();
}

bool Generation::send_choices() {
  for (std::uint64_t choice = 0; reply_.role_chunk && choice < choices_; ++choice) {
    const std::string data = chunk(choice, R"({"role":"assistant","content":null})", "null");
    if (!emit(data, Kind::other)) return false;
  }
  for (const std::string& piece : reply_.reasoning) {
    for (std::uint64_t choice = 0; choice < choices_; ++choice) {
      const std::string delta =
          fmt::format("{{{}:{}}}", quoted(reply_.reasoning_field), quoted(piece));
      if (!emit(chunk(choice, delta, "null"), Kind::token)) return false;
    }
  }
  if (!reply_.tool_calls.empty()) {
    if (!send_tool_calls()) return false;
  } else {
    for (std::uint64_t token = 0; token < tokens_; ++token) {
      if (!send_choice_text(token)) return false;
    }
  }
  for (std::uint64_t choice = 0; choice < choices_; ++choice) {
    if (!emit(chunk(choice, "{}", quoted(finish_reason_)), Kind::other)) return false;
  }
  return true;
}

bool Generation::send_choice_text(std::uint64_t token) {
  for (std::uint64_t choice = 0; choice < choices_; ++choice) {
    const std::string delta = fmt::format(R"({{"content":{}}})", quoted(token_text(token)));
    if (!emit(chunk(choice, delta, "null"), Kind::token)) return false;
  }
  return true;
}

bool Generation::send_tool_calls() {
  std::uint64_t index = 0;
  for (const json::value& item : reply_.tool_calls) {
    const json::object& call = item.as_object();
    const std::string head = fmt::format(
        R"({{"tool_calls":[{{"index":{},"id":{},"type":"function",)"
        R"("function":{{"name":{},"arguments":""}}}}]}})",
        index, quoted(text_member(call, "id")), quoted(text_member(call, "name")));
    if (!emit(chunk(0, head, "null"), Kind::token)) return false;
    for (const json::value& piece : call.at("arguments").as_array()) {
      const std::string delta =
          fmt::format(R"({{"tool_calls":[{{"index":{},"function":{{"arguments":{}}}}}]}})", index,
                      quoted(piece.as_string()));
      if (!emit(chunk(0, delta, "null"), Kind::token)) return false;
    }
    ++index;
  }
  return true;
}

bool Generation::send_end() {
  fake_.leave(call_);
  if (reply_.framing == "close") {
    if (!flush()) return false;
    stop(Ended::broken);
    return true;
  }
  return write("0\r\n\r\n") && flush();
}

bool Generation::send_whole() {
  std::string text;
  for (std::uint64_t token = 0; token < tokens_; ++token) {
    if (!emit("", Kind::token)) return false;
    if (reply_.tool_calls.empty()) text += token_text(token);
  }
  if (tokens_ == 0 && !emit("", Kind::other)) return false;
  json::object message{{"role", "assistant"}, {"content", text}};
  if (!reply_.reasoning.empty()) {
    std::string thought;
    for (const std::string& piece : reply_.reasoning) thought += piece;
    message[reply_.reasoning_field] = thought;
  }
  json::array calls;
  for (const json::value& item : reply_.tool_calls) {
    std::string arguments;
    for (const json::value& piece : item.at("arguments").as_array()) arguments += piece.as_string();
    json::object function{{"name", item.at("name")}, {"arguments", arguments}};
    calls.push_back({{"type", "function"}, {"function", function}, {"id", item.at("id")}});
  }
  if (!calls.empty()) message["tool_calls"] = calls;
  std::string choices;
  for (std::uint64_t choice = 0; choice < choices_; ++choice) {
    choices += fmt::format(R"({}{{"finish_reason":{},"index":{},"message":{}}})", choice ? "," : "",
                           quoted(finish_reason_), choice, json::serialize(message));
  }
  fake_.leave(call_);
  std::string tail = chunk_tail_;
  tail.replace(tail.rfind(".chunk"), 6, "");
  const std::string body = fmt::format(R"({{"choices":[{}],{},{}}})", choices, tail, usage());
  return write(fmt::format("HTTP/1.1 200 OK\r\nServer: llama.cpp\r\n"
                           "Content-Type: application/json; charset=utf-8\r\n"
                           "Content-Length: {}\r\nKeep-Alive: timeout=5, max=100\r\n\r\n{}",
                           body.size(), body)) &&
         flush();
}

bool Generation::emit(std::string_view data, Kind kind) {
  if (!may_go_on(kind)) return false;
  ++events_;
  if (data == "[DONE]") fake_.leave(call_);
  if (!stream_) return true;
  if (!write(framed(data))) return false;
  if (++buffered_events_ < reply_.events_per_write) return true;
  return flush();
}

std::string Generation::framed(std::string_view data) const {
  const std::string& end = reply_.line_end;
  std::string event = reply_.comments ? ":" + end + end : "";
  event.append("data: ").append(data).append(end).append(end);
  if (reply_.framing == "close") return event;
  return fmt::format("{:x}\r\n{}\r\n", event.size(), event);
}

bool Generation::may_go_on(Kind kind) {
  if (reply_.death && events_ >= reply_.death->after) return end_badly();
  if (reply_.hold_after && events_ == *reply_.hold_after) {
    reply_.hold_after.reset();
    const std::uint64_t wanted = ++releases_taken_;
    if (!flush()) return false;
    const auto released = [&] { return call_.releases >= wanted || call_.finished; };
    if (!fulfil(released)) return false;
  }
  if (kind == Kind::token && reply_.gated) {
    const std::uint64_t wanted = ++steps_taken_;
    if (!flush()) return false;
    const auto stepped = [&] { return call_.steps >= wanted || call_.finished; };
    if (!fulfil(stepped)) return false;
  }
  if (kind == Kind::token && reply_.pace_us > 0) {
    next_token_ += std::chrono::microseconds(reply_.pace_us);
    connection_.watch_until(next_token_);
  }
  if (!connection_.peer_gone()) return true;
  stop(Ended::left);
  return false;
}

bool Generation::fulfil(const std::function<bool()>& condition) {
  const Fake::Waited waited = fake_.wait(call_, &connection_, condition);
  if (waited == Fake::Waited::fulfilled) return true;
  if (waited == Fake::Waited::core_died) return end_by_core();
  stop(waited == Fake::Waited::gone ? Ended::left : Ended::broken);
  return false;
}

// As vLLM does it: an error in the stream and then its usual end. Always false: nothing follows.
bool Generation::end_by_core() {
  fake_.leave(call_);
  if (events_ == 0) {
    fail(500, json::parse(core_error()).at("error").as_object());
    return false;
  }
  write(framed(core_error()));
  write(framed("[DONE]"));
  write("0\r\n\r\n");
  if (flush()) stop(Ended::broken);
  return false;
}

bool Generation::write(std::string_view bytes) {
  buffer_.append(bytes);
  return true;
}

bool Generation::flush() {
  buffered_events_ = 0;
  const bool sent = connection_.write(buffer_, reply_.segment_bytes);
  buffer_.clear();
  if (!sent) stop(Ended::left);
  return sent;
}

// Always false: nothing follows.
bool Generation::end_badly() {
  const std::string how = reply_.death->how;
  reply_.death.reset();
  fake_.leave(call_);
  if (how != "garbage_http" && events_ == 0 && stream_ && buffer_.empty()) send_head();
  const bool chunked = reply_.framing != "close";
  if (how == "garbage_http") write("\x16\x03\x01 this is no HTTP\r\n\r\n");
  if (how == "garbage") write(framed("{\"choices\":[{\"delta\":{\"content\":\x01\xff"));
  if (how == "error") {
    const json::object error = reply_.error.empty()
                                   ? error_object(500, "server_error", "Compute error.")
                                   : reply_.error;
    write(framed(json::serialize(json::object{{"error", error}})));
  }
  if ((how == "garbage" || how == "error" || how == "end") && chunked) write("0\r\n\r\n");
  if (!flush()) return false;
  stop(Ended::broken);
  if (how == "exit") fake_.end(fake_.settings().exit_code, fake_.settings().stderr_text);
  if (how == "kill") ::kill(::getpid(), SIGKILL);
  if (how == "endless") {
    const std::string piece(65536, 'x');
    write(chunked ? "5\r\ndata:\r\n" : "data:");
    do {
      write(chunked ? fmt::format("{:x}\r\n{}\r\n", piece.size(), piece) : piece);
    } while (flush());
  }
  how == "reset" ? connection_.reset() : connection_.close();
  return false;
}

std::string Generation::chunk(std::uint64_t choice, std::string_view delta,
                              std::string_view finish) const {
  return fmt::format(R"({{"choices":[{{"finish_reason":{},"index":{},"delta":{}}}],{}}})", finish,
                     choice, delta, chunk_tail_);
}

std::string Generation::token_text(std::uint64_t token) const {
  if (token < reply_.content.size()) return reply_.content[token];
  return fmt::format("tok{} ", token);
}

std::string Generation::usage() const {
  const std::uint64_t completion = tokens_ * choices_;
  return fmt::format(
      R"("usage":{{"completion_tokens":{},"prompt_tokens":{},"total_tokens":{},)"
      R"("prompt_tokens_details":{{"cached_tokens":{}}}}},)"
      R"("timings":{{"cache_n":{},"prompt_n":{},"prompt_ms":1.5,"predicted_n":{},)"
      R"("predicted_ms":2.5}})",
      completion, reply_.prompt_tokens, completion + reply_.prompt_tokens, reply_.cached_tokens,
      reply_.cached_tokens, reply_.prompt_tokens - reply_.cached_tokens, completion);
}

void Generation::tell_end(std::string_view event) {
  fake_.channel().tell(event, {{"request", call_.id}, {"events", events_}});
}

}  // namespace werk::fake
