#include "werk/gateway/openai_chat.hpp"

#include <fmt/format.h>

#include "werk/gateway/abilities.hpp"
#include "werk/gateway/errors.hpp"
#include "werk/gateway/openai_answer.hpp"

namespace werk::gateway {

namespace {

constexpr std::string_view kWaitingComment = ": waiting\n\n";

ChatStreamOptions stream_options(const Call& call, const ChatRequestView& view, std::string model) {
  ChatStreamOptions options;
  options.client_model = std::move(model);
  options.usage = view.include_usage || !view.stream ? Wanted::yes : Wanted::no;
  options.progress = view.return_progress && view.stream ? Wanted::yes : Wanted::no;
  options.choices = view.choices;
  options.call_id_seed = call.id();
  return options;
}

ChatFoldOptions fold_options(const Call& call, std::string model) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  ChatFoldOptions options;
  options.client_model = std::move(model);
  options.default_id = "chatcmpl-" + call.id();
  options.default_created = std::chrono::duration_cast<std::chrono::seconds>(now).count();
  return options;
}

}  // namespace

// What one request comes to once its body is read.
struct OpenAiChat::Job {
  std::string body;
  ChatRequestView view;
  std::string model;  // as the client wrote it
};

async::awaitable<void> OpenAiChat::handle(http::Exchange& exchange, Call& call) {
  Status outcome = co_await run(exchange, call);
  co_await conclude_call(exchange, call, std::move(outcome), openai_errors());
}

async::awaitable<Status> OpenAiChat::run(http::Exchange& exchange, Call& call) {
  EngineCall engine_call(parts_, exchange, call, settings_.engine_silence);
  Result<Job> job = co_await read(engine_call);
  if (!job) co_return pass_on(job);
  call.model = job->model;
  co_return co_await generate(exchange, call, engine_call, *job);
}

async::awaitable<Result<OpenAiChat::Job>> OpenAiChat::read(EngineCall& engine_call) {
  ChatRequestReader reader;
  const BodyFeed feed = [&reader](std::string_view piece) { return reader.feed(piece); };
  Result<std::string> body = co_await engine_call.read_body(settings_.body_bytes_max, feed);
  if (!body) co_return pass_on(body);
  Job job;
  job.body = std::move(*body);
  Result<ChatRequestView> view = reader.finish(job.body);
  if (!view) co_return pass_on(view);
  job.view = std::move(*view);
  Result<std::string> model = model_of(job.view.model, settings_.default_model);
  if (!model) co_return pass_on(model);
  job.model = std::move(*model);
  co_return job;
}

async::awaitable<Status> OpenAiChat::generate(http::Exchange& exchange, Call& call,
                                              EngineCall& engine_call, Job& job) {
  Result<routing::SharedRoute> route = co_await engine_call.find_route(job.model);
  if (!route) co_return pass_on(route);
  EarlyHeaders early;
  call.streamed = job.view.stream;
  if (job.view.stream) early = {settings_.early_headers, kWaitingComment};
  Result<runtime::Admission> admission =
      co_await engine_call.admit(**route, job.view.choices, early);
  if (!admission) co_return pass_on(admission);
  engine::Runtime& runtime = admission->lease.runtime();
  Needs needs;
  needs.tools = job.view.has_tools && job.view.tool_choice != ToolChoice::none;
  needs.images = job.view.has_images;
  needs.remote_media = job.view.has_remote_media;
  Status able = check_abilities(needs, runtime.facts(), job.model);
  if (!able) co_return able;
  const Result<EngineWay> way = way_to(runtime);
  if (!way) co_return fail(way.error());
  EngineEdits edits;
  edits.engine_model = way->model_name();
  edits.taken = taken_by(way->profile());
  edits.named_tool =
      way->profile().names_tools_as_objects ? NamedTool::as_object : NamedTool::as_only_tool;
  edits.defaults = settings_.defaults_of((*route)->plan.manifest.id);
  const std::string body = rewrite_chat_request(job.body, job.view, edits);
  ChatStreamFilter filter(stream_options(call, job.view, job.model));
  if (job.view.stream) {
    OpenAiStreamAnswer answer(exchange, call);
    co_return co_await engine_call.run(*admission, *way, body, filter, answer);
  }
  OpenAiWholeAnswer answer(exchange, call, fold_options(call, job.model));
  co_return co_await engine_call.run(*admission, *way, body, filter, answer);
}

}  // namespace werk::gateway
