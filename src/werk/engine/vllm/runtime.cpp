#include "werk/engine/vllm/runtime.hpp"

#include <fmt/format.h>

#include "werk/engine/known_servers.hpp"
#include "werk/engine/vllm/facts.hpp"

namespace werk::engine::vllm {
namespace {

constexpr std::chrono::seconds kHealthLimit{2};
constexpr std::size_t kStatusBytesMax = 64 * 1024;
constexpr std::size_t kReasonBytesMax = 600;
constexpr int kUnavailable = 503;

}  // namespace

std::optional<HttpTarget> VllmRuntime::passthrough(Dialect dialect) const {
  if (dialect != Dialect::openai_chat) return std::nullopt;
  HttpTarget target = chat_target();
  target.count_path = kVllmCount.path;
  target.count_member = kVllmCount.member;
  target.profile.takes_later_system = facts().takes_later_system;
  return target;
}

std::string VllmRuntime::telling(std::string_view output) const {
  return telling_lines(output, kReasonBytesMax);
}

// Its front end outlives a dead core for some seconds, and says so here.
async::awaitable<bool> VllmRuntime::says_dead(std::stop_token stop) {
  async::Deadline deadline(clock(), kHealthLimit, stop);
  auto answer = co_await client().fetch(reach().address(), reach().get("/health"), kStatusBytesMax,
                                        deadline.token());
  co_return answer && answer->status == kUnavailable;
}

// Nobody waits for a place on it.
async::awaitable<Result<std::size_t>> VllmRuntime::busy_slots(std::stop_token) { co_return 0; }

}  // namespace werk::engine::vllm
