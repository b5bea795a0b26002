#include "werk/engine/llama_server/runtime.hpp"

#include <fmt/format.h>

#include "werk/engine/known_servers.hpp"
#include "werk/engine/llama_server/facts.hpp"
#include "werk/engine/llama_server/failure.hpp"

namespace werk::engine::llama_server {
namespace {

constexpr std::chrono::seconds kStatusLimit{1};
constexpr std::size_t kStatusBytesMax = 4 * 1024 * 1024;
constexpr std::size_t kReasonBytesMax = 600;

}  // namespace

std::optional<HttpTarget> LlamaServerRuntime::passthrough(Dialect dialect) const {
  if (dialect != Dialect::openai_chat) return std::nullopt;
  HttpTarget target = chat_target();
  target.count_path = fmt::format("/v1{}", kLlamaServerCount.path);
  target.count_member = kLlamaServerCount.member;
  target.profile = llama_server_profile();
  target.profile.keeps_earlier_reasoning = facts().keeps_reasoning;
  target.profile.takes_later_system = facts().takes_later_system;
  return target;
}

std::string LlamaServerRuntime::telling(std::string_view output) const {
  return telling_lines(output, kReasonBytesMax);
}

async::awaitable<Result<std::size_t>> LlamaServerRuntime::busy_slots(std::stop_token stop) {
  async::Deadline deadline(clock(), kStatusLimit, stop);
  auto answer = co_await client().fetch(reach().address(), reach().get("/slots"), kStatusBytesMax,
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

}  // namespace werk::engine::llama_server
