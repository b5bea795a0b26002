#include "werk/gateway/messages.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "werk/base/digest.hpp"
#include "werk/gateway/abilities.hpp"
#include "werk/gateway/errors.hpp"
#include "werk/gateway/messages_answer.hpp"
#include "werk/gateway/messages_errors.hpp"
#include "werk/gateway/messages_relay.hpp"
#include "werk/gateway/openai_render.hpp"

namespace werk::gateway {

namespace {

constexpr std::string_view kUnseen = "[an image, which this model can't see]";

Needs needs_of(const chat::Request& request) {
  Needs needs;
  needs.tools = !request.tools.empty() && request.tool_choice.use != chat::ToolUse::none;
  const auto is_image = [](const auto& part) { return std::holds_alternative<chat::Image>(part); };
  for (const chat::Message& message : request.messages) {
    for (const chat::Part& part : message.parts) {
      needs.images = needs.images || is_image(part);
      if (const auto* result = std::get_if<chat::ToolResult>(&part)) {
        needs.images = needs.images || std::ranges::any_of(result->parts, is_image);
      }
    }
  }
  return needs;
}

// A model without eyes is told of the images that its tools brought: the client can't take them
// back.
void tell_of_images_in_results(chat::Request& request, const engine::RuntimeFacts& facts) {
  if (facts.supports_images) return;
  for (chat::Message& message : request.messages) {
    for (chat::Part& part : message.parts) {
      auto* result = std::get_if<chat::ToolResult>(&part);
      if (result == nullptr) continue;
      for (auto& each : result->parts) {
        if (std::holds_alternative<chat::Image>(each)) each = chat::Text{std::string(kUnseen)};
      }
    }
  }
}

OpenAiRenderOptions render_options(const EngineWay& way, RequestDefaults defaults) {
  OpenAiRenderOptions options;
  options.defaults = std::move(defaults);
  // The client must say how much it wants, and a count is of the prompt alone.
  std::erase_if(options.defaults, [](const auto& each) { return each.first == "max_tokens"; });
  options.engine_model = way.model_name();
  const engine::ChatProfile& profile = way.profile();
  options.named_tool =
      profile.names_tools_as_objects ? NamedTool::as_object : NamedTool::as_only_tool;
  options.stop_report =
      profile.tells_stop_when_verbose ? StopReport::llama_verbose : StopReport::unasked;
  options.earlier_reasoning =
      profile.keeps_earlier_reasoning ? EarlierReasoning::send : EarlierReasoning::leave_out;
  options.system_place =
      profile.takes_later_system ? SystemPlace::anywhere : SystemPlace::only_first;
  options.reasoning_budget_member = profile.reasoning_budget_member;
  options.taken = taken_by(profile);
  return options;
}

ChunkEventsOptions events_options(const engine::RuntimeFacts& facts) {
  ChunkEventsOptions options;
  if (facts.context_tokens_per_slot > 0) options.context_tokens = facts.context_tokens_per_slot;
  return options;
}

MessageBlocksOptions blocks_options(const chat::Request& request) {
  MessageBlocksOptions options;
  options.stop_sequences = request.stop_sequences;
  if (request.reasoning == chat::ReasoningSwitch::off) options.thinking = ThinkingBlocks::leave_out;
  return options;
}

}  // namespace

// What one request comes to once its body is read.
struct Messages::Job {
  std::string body;
  Result<MessagesRequest> request;
  std::string model;  // as the client wrote it
  bool stream = false;

  // A server of somebody else's that speaks Messages itself may take what can't be translated here;
  // for every other engine it is the client's fault.
  bool may_run_on(const routing::Route& route) const {
    return request || route.engine->info().ownership == engine::Ownership::external;
  }
};

async::awaitable<void> Messages::generate(http::Exchange& exchange, Call& call) {
  Status outcome = co_await run_generation(exchange, call);
  co_await conclude_call(exchange, call, std::move(outcome), messages_errors());
}

async::awaitable<void> Messages::count(http::Exchange& exchange, Call& call) {
  Status outcome = co_await run_count(exchange, call);
  co_await conclude_call(exchange, call, std::move(outcome), messages_errors());
}

async::awaitable<Result<Messages::Job>> Messages::read(EngineCall& engine_call,
                                                       MessagesPurpose purpose) {
  MessagesRequestReader reader(purpose, edits_);
  const BodyFeed feed = [&reader](std::string_view piece) { return reader.feed(piece); };
  Result<std::string> body = co_await engine_call.read_body(settings_.body_bytes_max, feed);
  if (!body) co_return pass_on(body);
  Job job;
  job.request = reader.finish(*body);
  MessagesOutline outline;
  if (job.request) {
    outline = {job.request->model, job.request->stream};
  } else if (auto read = outline_messages(*body)) {
    outline = std::move(*read);
  } else {
    co_return pass_on(job.request);
  }
  Result<std::string> model = model_of(outline.model, settings_.default_model);
  if (!model && !job.request) co_return pass_on(job.request);
  if (!model) co_return pass_on(model);
  job.model = std::move(*model);
  job.stream = outline.stream;
  job.body = std::move(*body);
  co_return job;
}

async::awaitable<Status> Messages::run_generation(http::Exchange& exchange, Call& call) {
  EngineCall engine_call(parts_, exchange, call, settings_.engine_silence);
  Result<Job> job = co_await read(engine_call, MessagesPurpose::generate);
  if (!job) co_return pass_on(job);
  call.model = job->model;
  Result<routing::SharedRoute> route = co_await engine_call.find_route(job->model);
  if (!job->request && !(route && job->may_run_on(**route))) co_return pass_on(job->request);
  if (!route) co_return pass_on(route);
  EarlyHeaders early;
  call.streamed = job->stream;
  if (job->stream) early = {settings_.early_headers, kMessagesPing};
  Result<runtime::Admission> admission = co_await engine_call.admit(**route, 1, early);
  if (!admission) co_return pass_on(admission);
  const std::optional<EngineWay> native = native_way_to(admission->lease.runtime());
  if (native) {
    const auto form = job->stream ? MessagesRelay::Form::events : MessagesRelay::Form::whole;
    MessagesRelay relay(form, job->model);
    const std::string body = with_model(job->body, native->model_name());
    co_return co_await engine_call.run_native(*admission, *native, body, relay);
  }
  if (!job->request) co_return pass_on(job->request);
  job->body = std::string();  // it would double what a long conversation takes
  co_return co_await translate(exchange, call, engine_call, *admission, (*route)->plan.manifest.id,
                               *job);
}

async::awaitable<Status> Messages::translate(http::Exchange& exchange, Call& call,
                                             EngineCall& engine_call, runtime::Admission& admission,
                                             const std::string& model_id, Job& job) {
  MessagesRequest& request = *job.request;
  engine::Runtime& runtime = admission.lease.runtime();
  tell_of_images_in_results(request.chat, runtime.facts());
  Status able = check_abilities(needs_of(request.chat), runtime.facts(), job.model);
  if (!able) co_return able;
  const Result<EngineWay> way = way_to(runtime);
  if (!way) co_return fail(way.error());
  const RequestDefaults defaults = settings_.defaults_of(model_id);
  const std::string body = render_openai_chat(request.chat, render_options(*way, defaults));
  ChatStreamOptions stream;
  stream.client_model = job.model;
  stream.usage = Wanted::yes;
  stream.call_id_seed = call.id();
  ChatStreamFilter filter(std::move(stream));
  const MessageBlocksOptions blocks = blocks_options(request.chat);
  const std::string message_id = "msg_" + unique_hex();
  if (job.stream) {
    MessagesStreamOptions options{message_id, job.model, call.id(), blocks};
    MessagesStreamAnswer answer(exchange, call, parts_.clock, filter.facts(), std::move(options),
                                events_options(runtime.facts()));
    co_return co_await engine_call.run(admission, *way, body, filter, answer);
  }
  MessagesFoldOptions options;
  options.message_id = message_id;
  options.client_model = job.model;
  options.blocks = blocks;
  MessagesWholeAnswer answer(exchange, call, filter.facts(), std::move(options),
                             events_options(runtime.facts()));
  co_return co_await engine_call.run(admission, *way, body, filter, answer);
}

// What an engine is asked when it is to count.
Result<Messages::Question> Messages::question_for(engine::Runtime& runtime,
                                                  const std::string& model_id, Job& job) const {
  if (std::optional<EngineWay> native = native_way_to(runtime))
    return Question{*native, with_model(job.body, native->model_name())};
  if (!job.request) return pass_on(job.request);
  chat::Request& chat = job.request->chat;
  tell_of_images_in_results(chat, runtime.facts());
  Status able = check_abilities(needs_of(chat), runtime.facts(), job.model);
  if (!able) return pass_on(able);
  Result<EngineWay> way = way_to(runtime);
  if (!way) return pass_on(way);
  const RequestDefaults defaults = settings_.defaults_of(model_id);
  return Question{*way, render_openai_chat(chat, render_options(*way, defaults))};
}

async::awaitable<Status> Messages::run_count(http::Exchange& exchange, Call& call) {
  EngineCall engine_call(parts_, exchange, call, settings_.engine_silence);
  Result<Job> job = co_await read(engine_call, MessagesPurpose::count);
  if (!job) co_return pass_on(job);
  call.model = job->model;
  Result<routing::SharedRoute> route = co_await engine_call.find_route(job->model);
  if (!job->request && !(route && job->may_run_on(**route))) co_return pass_on(job->request);
  if (!route) co_return pass_on(route);
  // Counting needs the runtime but no slot of it.
  Result<runtime::Lease> lease =
      co_await parts_.cache.acquire(*(*route)->engine, (*route)->plan, exchange.gone(), &call);
  if (!lease) co_return pass_on(lease);
  call.counting();
  Result<Question> question = question_for(lease->runtime(), (*route)->plan.manifest.id, *job);
  if (!question) co_return pass_on(question);
  const Result<std::uint64_t> tokens =
      co_await engine_call.count(*lease, question->way, question->body);
  if (!tokens) co_return fail(tokens.error());
  call.prompt_tokens = *tokens;
  http::ResponseHead head;
  head.headers.add("Content-Type", "application/json");
  const std::string page = fmt::format("{{\"input_tokens\":{}}}", *tokens);
  co_return co_await exchange.respond(std::move(head), page);
}

}  // namespace werk::gateway
