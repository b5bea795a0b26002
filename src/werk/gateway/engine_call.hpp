// EngineCall: what every generation request goes through, whatever its dialect: its body is read
// under limits, its model routed, the right to run awaited, the engine's stream read, filtered and
// handed to the dialect's AnswerWriter. One per request, on its coroutine's frame; loop thread
// only. A client that leaves at any point ends it in the same turn: the engine's connection closes,
// lease and permit go back with the scope.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "werk/gateway/body_budget.hpp"
#include "werk/gateway/call.hpp"
#include "werk/gateway/engine_request.hpp"
#include "werk/gateway/errors.hpp"
#include "werk/gateway/installed_models.hpp"
#include "werk/gateway/openai_request.hpp"
#include "werk/gateway/openai_stream.hpp"
#include "werk/gateway/silence_limit.hpp"
#include "werk/http/client.hpp"
#include "werk/http/exchange.hpp"
#include "werk/http/sse.hpp"
#include "werk/routing/router.hpp"
#include "werk/runtime/runtime_cache.hpp"

namespace werk::gateway {

// What calls work with; all borrowed.
struct CallParts {
  async::Clock& clock;
  InstalledModels& models;
  const routing::Router& router;
  runtime::RuntimeCache& cache;
  http::Client& client;
  BodyBudget& budget;
  std::string_view node_id;  // by which other nodes know this one
};

// A dialect's way of answering: chunks go into sink(), flush() writes on to the client what they
// came to, end() completes the answer. Errors are not its business.
class AnswerWriter {
 public:
  virtual ~AnswerWriter() = default;
  virtual ChunkSink& sink() = 0;
  // After each piece of the engine's stream but the last.
  virtual async::awaitable<Status> flush(const ChatStreamFacts& facts) = 0;
  // The engine's stream has properly ended.
  virtual async::awaitable<Status> end(const ChatStreamFacts& facts) = 0;
};

// What a streamed call gets until its answer begins, so that its client doesn't give up: the head
// once it has waited `after`, and then a sign of life time and again. While it waits for the right
// to run a timer sees to it; later the engine's own signs of life do.
struct EarlyHeaders {
  async::Duration after{};     // zero: never
  std::string_view sign = {};  // an event or a comment that clients skip
};
constexpr async::Duration kSignOfLifeEvery = std::chrono::seconds(10);

// Where a body goes as it arrives; fails as soon as it can't be right any more.
using BodyFeed = std::function<Status(std::string_view piece)>;

// Writes what has gathered to the client of an event stream, the first time with the head, and
// clears it.
async::awaitable<Status> write_events(http::Exchange& exchange, Call& call, std::string& out);
// The same with what ends the stream behind it.
async::awaitable<Status> end_events(http::Exchange& exchange, Call& call, std::string& out);

// Ends a call that failed: as an error of the dialect, before the answer's first byte or as its
// last event, or in silence when nobody listens any more.
async::awaitable<void> refuse_call(http::Exchange& exchange, Call& call, Error error,
                                   const ErrorSpeech& speech);

// Records the outcome; tells a failure to the client.
async::awaitable<void> conclude_call(http::Exchange& exchange, Call& call, Status outcome,
                                     const ErrorSpeech& speech);

// The model of a call: the one it names, else the node's default.
Result<std::string> model_of(const std::optional<std::string>& named,
                             const std::optional<std::string>& default_model);

// How a runtime is spoken to: as a server, or through its port.
struct EngineWay {
  std::optional<engine::HttpTarget> http;
  engine::ChatPort* port = nullptr;                        // where there is no http
  engine::Dialect dialect = engine::Dialect::openai_chat;  // that it is spoken to in

  const engine::ChatProfile& profile() const { return http ? http->profile : port->profile(); }
  const std::string& model_name() const { return http ? http->model_name : port->model_name(); }
};

TakenMembers taken_by(const engine::ChatProfile& profile);

// unsupported where the engine takes no chat at all.
Result<EngineWay> way_to(engine::Runtime& runtime);
// Where Messages go as they are; none: they are translated.
std::optional<EngineWay> native_way_to(const engine::Runtime& runtime);

class MessagesRelay;

// Stops its token when the client has left or the runtime goes under the call.
class CallEnd {
 public:
  CallEnd(http::Exchange& exchange, const runtime::Lease& lease)
      : left_(exchange.gone(), Stop{over_}), unloaded_(lease.ended(), Stop{over_}) {}
  std::stop_token token() const { return over_.get_token(); }

 private:
  struct Stop {
    std::stop_source over;
    void operator()() { over.request_stop(); }
  };
  std::stop_source over_;
  std::stop_callback<Stop> left_;
  std::stop_callback<Stop> unloaded_;
};

class EngineCall {
 public:
  EngineCall(const CallParts& parts, http::Exchange& exchange, Call& call, async::Duration silence)
      : parts_(parts), exchange_(exchange), call_(call), hold_(parts.budget), silence_(silence) {}
  EngineCall(const EngineCall&) = delete;
  EngineCall& operator=(const EngineCall&) = delete;

  async::awaitable<Result<std::string>> read_body(std::uint64_t bytes_max, BodyFeed feed);
  async::awaitable<Result<routing::SharedRoute>> find_route(std::string model);
  // Waits for a place, a load and a slot. With early headers the answer may have begun when it
  // returns, whether the call may run or not; nobody writes to the exchange any more then.
  async::awaitable<Result<runtime::Admission>> admit(const routing::Route& route,
                                                     std::size_t weight, EarlyHeaders early = {});
  // Sends the body and carries the engine's stream to the writer. An engine's fault is explained by
  // its death where it died; a runtime that is unloaded under the call ends it with `unloaded`.
  async::awaitable<Status> run(runtime::Admission& admission, const EngineWay& way,
                               std::string_view body, ChatStreamFilter& filter,
                               AnswerWriter& writer);

  // The same where the engine's server speaks the client's own dialect.
  async::awaitable<Status> run_native(runtime::Admission& admission, const EngineWay& way,
                                      std::string_view body, MessagesRelay& relay);

  // Asks the engine how many tokens this body's prompt comes to, which needs no slot. Fails with
  // unsupported where it can't, and as run() does.
  async::awaitable<Result<std::uint64_t>> count(runtime::Lease& lease, const EngineWay& way,
                                                std::string_view body);

 private:
  async::awaitable<Result<runtime::Admission>> wait(const routing::Route& route, runtime::Ask ask,
                                                    EarlyHeaders early);
  async::awaitable<void> show_life(std::stop_token admitted);
  async::awaitable<Status> show_sign();
  bool sign_is_due() const;
  async::awaitable<Status> talk(runtime::Admission& admission, const engine::HttpTarget& target,
                                std::string_view body, ChatStreamFilter& filter,
                                AnswerWriter& writer, std::stop_token over);
  async::awaitable<Status> talk_to_port(runtime::Admission& admission, engine::ChatPort& port,
                                        std::string_view body, ChatStreamFilter& filter,
                                        AnswerWriter& writer, std::stop_token over);
  async::awaitable<Status> talk_native(runtime::Admission& admission,
                                       const engine::HttpTarget& target, std::string_view body,
                                       MessagesRelay& relay, std::stop_token over);
  // Sends the request; fails with what a status other than 200 means, its body read.
  async::awaitable<Result<std::unique_ptr<http::Response>>> ask(runtime::Admission& admission,
                                                                const engine::HttpTarget& target,
                                                                http::ClientRequest request,
                                                                SilenceLimit& silence);
  // What was read of an engine's answer, with its life or its end noted.
  Result<std::string_view> noted(const Result<std::string_view>& bytes, SilenceLimit& silence,
                                 const runtime::Lease& lease);
  // The rest of the framing, so that the connection can be used again.
  async::awaitable<void> read_rest(http::Response& engine);
  async::awaitable<Error> read_refusal(http::Response& engine, SilenceLimit& silence,
                                       const engine::HttpTarget& target);
  async::awaitable<Status> settle(runtime::Admission& admission, const EngineWay& way,
                                  const ChatStreamFacts& facts, Status talked);
  async::awaitable<Status> end(ChatStreamFilter& filter, AnswerWriter& writer);
  async::awaitable<Result<std::uint64_t>> count_by_http(const EngineWay& way, std::string_view body,
                                                        const async::Deadline& limit);
  async::awaitable<Status> relay(http::Response& engine, SilenceLimit& silence,
                                 const runtime::Lease& lease, ChatStreamFilter& filter,
                                 AnswerWriter& writer);
  // Leaves in `out` what came last, to be written with the end or before the error.
  async::awaitable<Status> relay_events(http::Response& engine, SilenceLimit& silence,
                                        const runtime::Lease& lease, MessagesRelay& relay,
                                        std::string& out);
  async::awaitable<Status> relay_whole(http::Response& engine, SilenceLimit& silence,
                                       runtime::Admission& admission, MessagesRelay& relay);
  Status feed_relay(MessagesRelay& relay, std::string& out);
  async::awaitable<Status> piece(std::string_view bytes, ChatStreamFilter& filter,
                                 AnswerWriter& writer);
  enum class FeedUntil : std::uint8_t { first_event, end };
  // What the parser holds, up to the first event with text or to its end.
  Status feed(FeedUntil until, ChatStreamFilter& filter, AnswerWriter& writer);
  RequestOrigin origin() const { return {exchange_.request(), parts_.node_id}; }
  Error gave_up(const Error& error, const SilenceLimit& silence);
  async::awaitable<Error> explain(Error error, runtime::Lease& lease, const EngineWay& way);
  void tell_health(engine::Runtime& runtime, const Status& talked) const;
  // After each piece of the engine's stream, with the time at which it came.
  void note_piece(const ChatStreamFacts& facts, const runtime::Lease& lease, async::TimePoint now);
  void note_tokens(const ChatStreamFacts& facts, const runtime::Lease& lease);

  const CallParts& parts_;
  http::Exchange& exchange_;
  Call& call_;
  BodyHold hold_;
  async::Duration silence_;
  bool was_silent_ = false;   // it passed
  bool engine_away_ = false;  // it could not be reached, broke off, or was silent
  std::string_view sign_;     // empty: without early headers
  async::TimePoint sign_due_at_{};
  http::SseParser parser_;
};

}  // namespace werk::gateway
