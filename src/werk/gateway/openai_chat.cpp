#include "werk/gateway/openai_chat.hpp"

#include <fmt/format.h>

#include "werk/base/digest.hpp"
#include "werk/gateway/engine_error.hpp"
#include "werk/gateway/errors.hpp"
#include "werk/gateway/openai_fold.hpp"
#include "werk/gateway/silence_limit.hpp"
#include "werk/http/sse.hpp"

namespace werk::gateway {

using namespace std::chrono_literals;

namespace {

constexpr std::size_t kEngineErrorBytesMax = 64 * 1024;
constexpr auto kTrailerWait = 200ms;

Error refusal(ErrorCode code, std::string message, std::string param) {
  Error error{code, std::move(message), Origin::client};
  error.param = std::move(param);
  return error;
}

// What this model cannot do and the engine would ignore without a word.
Status check_abilities(const ChatRequestView& view, const engine::RuntimeFacts& facts,
                       const std::string& model) {
  const bool wants_tools = view.has_tools && view.tool_choice != ToolChoice::none;
  if (wants_tools && !facts.supports_tools) {
    return fail(refusal(
        ErrorCode::unsupported,
        fmt::format(
            "the chat template of {} has no place for tools, so the model would never see them",
            model),
        "tools"));
  }
  if (view.has_images && !facts.supports_images) {
    return fail(refusal(
        ErrorCode::unsupported,
        fmt::format("{} can't see images: no projector file (mmproj) lies beside it", model),
        "messages"));
  }
  if (view.has_remote_media) {
    return fail(
        refusal(ErrorCode::unsupported,
                "media must be sent inside the request as a data: URL; this node fetches none",
                "messages"));
  }
  return {};
}

void note_tokens(Call& call, const ChatStreamFacts& facts) {
  if (facts.started) {
    call.prompt_tokens = facts.started->prompt_tokens;
    call.cached_tokens = facts.started->cached_tokens;
  }
  if (facts.usage) {
    call.prompt_tokens = facts.usage->prompt_tokens;
    call.cached_tokens = facts.usage->cached_tokens;
    call.completion_tokens = facts.usage->completion_tokens;
  }
}

http::ResponseHead event_stream_head() {
  http::ResponseHead head;
  head.headers.add("Content-Type", "text/event-stream; charset=utf-8");
  head.headers.add("Cache-Control", "no-cache");
  return head;
}

// Nothing of the client's own head goes on to the engine, its key least of all.
http::ClientRequest engine_request(const engine::HttpTarget& target, std::string_view body) {
  http::ClientRequest request;
  request.method = "POST";
  request.target = target.path;
  request.headers.add("Content-Type", "application/json");
  request.headers.add("Accept", "text/event-stream");
  if (!target.authorization.empty()) request.headers.add("Authorization", target.authorization);
  request.body = body;
  return request;
}

}  // namespace

// What one request needs from its arrival to its end.
struct OpenAiChat::Job {
  explicit Job(BodyBudget& budget) : hold(budget) {}
  BodyHold hold;
  std::string body;
  ChatRequestView view;
  std::string model;  // as the client wrote it
  std::optional<routing::Route> route;
};

// The engine's stream on its way to one client.
class OpenAiChat::Relay {
 public:
  Relay(http::Exchange& exchange, Call& call, const Job& job)
      : exchange_(exchange),
        call_(call),
        filter_(options(call, job)),
        writer_(out_),
        fold_(fold_options(call, job)),
        streams_(job.view.stream) {}

  bool done() const { return filter_.done(); }
  const ChatStreamFacts& facts() const { return filter_.facts(); }

  // The next bytes of the engine; what they mean is written on to a streaming client.
  async::awaitable<Status> piece(std::string_view bytes) {
    Status fed = feed(bytes);
    // Tokens that came before a failure still reach the client.
    if (!out_.empty()) {
      const Status written = co_await flush();
      if (!written) co_return written;
    }
    co_return fed;
  }

  // The engine's stream has ended: ends the answer, or fails if it was cut short.
  async::awaitable<Status> end() {
    Result<std::optional<http::SseItem>> last = parser_.finish();
    if (!last) co_return pass_on(last);
    if (*last) {
      Status taken = take(**last);
      if (!taken) co_return taken;
    }
    Status complete = filter_.finish(sink());
    if (!complete) {
      if (!out_.empty()) co_await flush();
      co_return complete;
    }
    if (!streams_) {
      const std::string whole = fold_.finish();
      http::ResponseHead head;
      head.headers.add("Content-Type", "application/json");
      call_.first_byte();
      co_return co_await exchange_.respond(std::move(head), whole);
    }
    out_ += kChatStreamEnd;
    Status written = co_await flush();
    if (!written) co_return written;
    co_return co_await exchange_.finish();
  }

 private:
  static ChatStreamOptions options(const Call& call, const Job& job) {
    ChatStreamOptions options;
    options.client_model = job.model;
    options.usage = job.view.include_usage || !job.view.stream ? Wanted::yes : Wanted::no;
    options.progress = job.view.return_progress && job.view.stream ? Wanted::yes : Wanted::no;
    options.choices = job.view.choices;
    options.call_id_seed = call.id();
    return options;
  }
  static ChatFoldOptions fold_options(const Call& call, const Job& job) {
    ChatFoldOptions options;
    options.client_model = job.model;
    options.default_id = "chatcmpl-" + call.id();
    options.default_created = std::chrono::duration_cast<std::chrono::seconds>(
                                  std::chrono::system_clock::now().time_since_epoch())
                                  .count();
    return options;
  }
  ChunkSink& sink() {
    if (streams_) return writer_;
    return fold_;
  }
  Status take(const http::SseItem& item) {
    if (item.kind == http::SseItem::Kind::comment) return {};
    return filter_.event(item.name, item.data, sink());
  }
  Status feed(std::string_view bytes) {
    parser_.feed(bytes);
    while (true) {
      Result<std::optional<http::SseItem>> item = parser_.next();
      if (!item) return pass_on(item);
      if (!*item) return {};
      Status taken = take(**item);
      if (!taken) return taken;
    }
  }
  async::awaitable<Status> flush() {
    Status written;
    if (exchange_.started()) {
      written = co_await exchange_.write(out_);
    } else {
      call_.first_byte();
      http::ResponseHead head = event_stream_head();
      written = co_await exchange_.start(std::move(head), out_);
    }
    out_.clear();
    co_return written;
  }

  http::Exchange& exchange_;
  Call& call_;
  http::SseParser parser_;
  ChatStreamFilter filter_;
  std::string out_;
  ChunkWriter writer_;
  ChatFold fold_;
  bool streams_;
};

OpenAiChat::OpenAiChat(ChatSettings settings, async::Clock& clock, InstalledModels& models,
                       const routing::Router& router, runtime::RuntimeCache& cache,
                       http::Client& client, BodyBudget& budget)
    : settings_(std::move(settings)),
      clock_(clock),
      models_(models),
      router_(router),
      cache_(cache),
      client_(client),
      budget_(budget) {}

async::awaitable<void> OpenAiChat::handle(http::Exchange& exchange, Call& call) {
  Status outcome = co_await run(exchange, call);
  if (outcome) {
    call.ended(Call::Outcome::served);
  } else {
    co_await refuse(exchange, call, std::move(outcome.error()));
  }
}

async::awaitable<Status> OpenAiChat::run(http::Exchange& exchange, Call& call) {
  Job job(budget_);
  Status read = co_await read_body(exchange, job);
  if (!read) co_return read;
  call.model = job.model;
  Status routed = co_await find_route(job);
  if (!routed) co_return routed;
  co_return co_await generate(exchange, call, job);
}

async::awaitable<Status> OpenAiChat::read_body(http::Exchange& exchange, Job& job) {
  exchange.limit_body(settings_.body_bytes_max);
  ChatRequestReader reader;
  if (const auto length = exchange.request().content_length;
      length && *length <= settings_.body_bytes_max) {
    job.body.reserve(std::min<std::uint64_t>(*length, std::uint64_t{1} << 20));
  }
  while (true) {
    const Result<std::string_view> piece = co_await exchange.read_body();
    if (!piece) co_return fail(piece.error());
    if (piece->empty()) break;
    if (!job.hold.add(piece->size())) {
      Error full{ErrorCode::capacity,
                 "the node holds as many request bodies as it may; try again shortly"};
      full.retry_after = 2s;
      co_return fail(std::move(full));
    }
    job.body += *piece;
    Status fed = reader.feed(*piece);
    if (!fed) co_return fed;
  }
  Result<ChatRequestView> view = reader.finish(job.body);
  if (!view) co_return pass_on(view);
  job.view = std::move(*view);
  if (job.view.model) {
    job.model = *job.view.model;
  } else if (settings_.default_model) {
    job.model = *settings_.default_model;
  } else {
    co_return fail(refusal(
        ErrorCode::invalid_request,
        "the request names no model, and the node was started without a default (--model ID)",
        "model"));
  }
  co_return Status();
}

async::awaitable<Status> OpenAiChat::find_route(Job& job) {
  const std::shared_ptr<const routing::Catalogue> catalogue = co_await models_.current();
  Result<routing::Route> route = router_.route(*catalogue, job.model);
  if (!route) co_return pass_on(route);
  job.route = std::move(*route);
  co_return Status();
}

async::awaitable<Status> OpenAiChat::generate(http::Exchange& exchange, Call& call, Job& job) {
  runtime::Ask ask;
  ask.weight = job.view.choices;
  ask.client = exchange.request().peer;
  const std::stop_token gone = exchange.gone();
  Result<runtime::Admission> admission =
      co_await cache_.admit(*job.route->engine, job.route->plan, ask, gone);
  if (!admission) co_return pass_on(admission);
  call.load_time = admission->load_time;
  call.permit_time = admission->permit_time;
  Status able = check_abilities(job.view, admission->lease.runtime().facts(), job.model);
  if (!able) co_return able;
  Status talked = co_await talk(exchange, call, job, *admission);
  if (talked || talked.error().origin != Origin::engine) co_return talked;
  Error explained = co_await explain(std::move(talked.error()), *admission);
  co_return fail(std::move(explained));
}

async::awaitable<Status> OpenAiChat::talk(http::Exchange& exchange, Call& call, Job& job,
                                          runtime::Admission& admission) {
  const auto target = admission.lease.runtime().passthrough(engine::Dialect::openai_chat);
  if (!target)
    co_return fail(ErrorCode::unsupported, "this engine does not speak the OpenAI chat dialect");
  EngineEdits edits;
  edits.engine_model = target->model_name;
  const std::string body = rewrite_chat_request(job.body, job.view, edits);
  http::ClientRequest request = engine_request(*target, body);
  http::Address address{target->unix_path, target->host, target->port};

  // Until the engine has said that it is finished its slot may still work for this call.
  admission.permit.quarantine();
  SilenceLimit silence(clock_, settings_.engine_silence, exchange.gone());
  const auto gave_up = [&](const Error& error) {
    if (!silence.expired()) return error;
    return Error{
        ErrorCode::engine_timeout,
        fmt::format(
            "the engine was silent for {} s",
            std::chrono::duration_cast<std::chrono::seconds>(settings_.engine_silence).count()),
        Origin::engine};
  };
  auto response = co_await client_.send(std::move(address), std::move(request), silence.token());
  if (!response) co_return fail(gave_up(response.error()));
  http::Response& engine = **response;
  if (engine.status != 200) {
    std::string text;
    while (text.size() < kEngineErrorBytesMax) {
      const Result<std::string_view> piece = co_await engine.read_some(silence.token());
      if (!piece || piece->empty()) break;
      text += *piece;
    }
    admission.permit.free();
    co_return fail(engine_error_from(engine.status, text));
  }
  Relay relay(exchange, call, job);
  while (!relay.done()) {
    const Result<std::string_view> piece = co_await engine.read_some(silence.token());
    silence.life();
    if (!piece) {
      note_tokens(call, relay.facts());
      co_return fail(gave_up(piece.error()));
    }
    if (piece->empty()) break;
    silence.pause();
    Status relayed = co_await relay.piece(*piece);
    silence.life();
    if (!relayed) {
      note_tokens(call, relay.facts());
      co_return relayed;
    }
  }
  note_tokens(call, relay.facts());
  if (relay.done()) admission.permit.free();
  Status ended = co_await relay.end();
  if (!ended) co_return ended;
  // The rest of the framing, so that the connection can be used again.
  async::Deadline trailer(clock_, kTrailerWait, exchange.gone());
  co_await engine.read_some(trailer.token());
  co_return ended;
}

async::awaitable<Error> OpenAiChat::explain(Error error, runtime::Admission& admission) {
  const bool engine_fault =
      error.code == ErrorCode::engine_failed || error.code == ErrorCode::engine_timeout;
  if (!engine_fault) co_return error;
  const bool dead = co_await admission.lease.settle_death();
  if (dead) error.message = "the engine died: " + admission.lease.runtime().exit_reason();
  co_return error;
}

async::awaitable<void> OpenAiChat::refuse(http::Exchange& exchange, Call& call, Error error) {
  call.failed(error);
  const bool nobody_listens =
      error.code == ErrorCode::cancelled || exchange.gone().stop_requested();
  if (nobody_listens) {
    call.status = 499;
    call.cancelled();
    if (exchange.started()) exchange.break_off();
    co_return;
  }
  if (exchange.started()) {
    const std::string event = openai_error_event(error);
    co_await exchange.write(event);
    exchange.break_off();
    co_return;
  }
  http::ResponseHead head = error_head(error);
  call.status = head.status;
  const std::string body = openai_error_body(error);
  co_await exchange.respond(std::move(head), body);
}

}  // namespace werk::gateway
