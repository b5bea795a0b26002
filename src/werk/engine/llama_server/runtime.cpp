#include "werk/engine/llama_server/runtime.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include "werk/engine/llama_server/facts.hpp"

namespace werk::engine::llama_server {
namespace {

constexpr std::chrono::seconds kStatusLimit{1};
constexpr std::size_t kStatusBytesMax = 4 * 1024 * 1024;
constexpr std::size_t kReasonBytesMax = 600;

}  // namespace

http::Address Reach::address() const {
  http::Address address;
  address.unix_path = socket;
  return address;
}

http::ClientRequest Reach::get(std::string target) const {
  http::ClientRequest request;
  request.method = "GET";
  request.target = std::move(target);
  request.headers.add("Authorization", fmt::format("Bearer {}", secret));
  return request;
}

LlamaServerRuntime::LlamaServerRuntime(std::unique_ptr<process::Child> child, Reach reach,
                                       RuntimeFacts facts, Masker masker, http::Client& client,
                                       async::Clock& clock)
    : child_(std::move(child)),
      reach_(std::move(reach)),
      facts_(std::move(facts)),
      masker_(std::move(masker)),
      client_(client),
      clock_(clock) {}

LlamaServerRuntime::~LlamaServerRuntime() {
  // The engine leaves the file behind.
  unlink(reach_.socket.c_str());
}

std::optional<HttpTarget> LlamaServerRuntime::passthrough(Dialect dialect) const {
  if (dialect != Dialect::openai_chat) return std::nullopt;
  HttpTarget target;
  target.unix_path = reach_.socket;
  target.path = "/v1/chat/completions";
  target.count_path = "/v1/chat/completions/input_tokens";
  target.profile.names_tools_as_objects = false;
  target.profile.tells_stop_when_verbose = true;
  target.profile.keeps_earlier_reasoning = facts_.keeps_reasoning;
  target.profile.takes_later_system = facts_.takes_later_system;
  target.profile.reasoning_budget_member = "reasoning_budget_tokens";
  target.profile.reports_progress = true;
  target.authorization = fmt::format("Bearer {}", reach_.secret);
  target.model_name = reach_.alias;
  return target;
}

std::string LlamaServerRuntime::exit_reason() const {
  const auto status = child_->status();
  const std::string lines = telling_lines(masker_.apply(child_->output_tail()), kReasonBytesMax);
  const std::string how = status ? status->text() : "still running";
  return lines.empty() ? how : fmt::format("{}: {}", how, lines);
}

async::awaitable<Result<std::size_t>> LlamaServerRuntime::busy_slots(std::stop_token stop) {
  async::Deadline deadline(clock_, kStatusLimit, stop);
  auto answer = co_await client_.fetch(reach_.address(), reach_.get("/slots"), kStatusBytesMax,
                                       deadline.token());
  if (!answer && deadline.expired()) {
    co_return fail(ErrorCode::engine_timeout, Origin::engine,
                   "llama-server did not tell its slots in time");
  }
  if (!answer) co_return pass_on(answer);
  if (answer->status != 200) {
    co_return fail(ErrorCode::engine_failed, Origin::engine,
                   fmt::format("llama-server answered /slots with status {}", answer->status));
  }
  co_return count_busy_slots(answer->body);
}

async::awaitable<void> LlamaServerRuntime::stop(async::Duration grace) {
  process::Grace limit{};
  limit.term = grace;
  // Nothing of this object is touched afterwards: once the child is reaped its owner may destroy
  // it.
  co_await child_->stop(limit);
}

}  // namespace werk::engine::llama_server
