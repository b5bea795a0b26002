#include "werk/engine/vllm/runtime.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include "werk/engine/vllm/facts.hpp"

namespace werk::engine::vllm {
namespace {

constexpr std::chrono::seconds kHealthLimit{2};
constexpr std::size_t kStatusBytesMax = 64 * 1024;
constexpr std::size_t kReasonBytesMax = 600;
constexpr int kUnavailable = 503;

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

ChatProfile chat_profile() {
  ChatProfile profile;
  profile.names_tools_as_objects = true;
  return profile;
}

HttpTarget chat_target() {
  HttpTarget target;
  target.path = "/v1/chat/completions";
  target.count_path = "/tokenize";
  target.count_member = "count";
  target.profile = chat_profile();
  return target;
}

VllmRuntime::VllmRuntime(std::unique_ptr<process::Child> child, Reach reach, RuntimeFacts facts,
                         Masker masker, http::Client& client, async::Clock& clock)
    : child_(std::move(child)),
      reach_(std::move(reach)),
      facts_(std::move(facts)),
      masker_(std::move(masker)),
      client_(client),
      clock_(clock) {}

VllmRuntime::~VllmRuntime() {
  // The engine leaves the file behind.
  unlink(reach_.socket.c_str());
}

std::optional<HttpTarget> VllmRuntime::passthrough(Dialect dialect) const {
  if (dialect != Dialect::openai_chat) return std::nullopt;
  HttpTarget target = chat_target();
  target.unix_path = reach_.socket;
  target.profile.takes_later_system = facts_.takes_later_system;
  target.authorization = fmt::format("Bearer {}", reach_.secret);
  target.model_name = reach_.alias;
  return target;
}

std::string VllmRuntime::exit_reason() const {
  const auto status = child_->status();
  const std::string lines = telling_lines(masker_.apply(child_->output_tail()), kReasonBytesMax);
  const std::string how = status ? status->text() : "still running";
  return lines.empty() ? how : fmt::format("{}: {}", how, lines);
}

// Its front end outlives a dead core for some seconds, and says so here.
async::awaitable<bool> VllmRuntime::says_dead(std::stop_token stop) {
  async::Deadline deadline(clock_, kHealthLimit, stop);
  auto answer = co_await client_.fetch(reach_.address(), reach_.get("/health"), kStatusBytesMax,
                                       deadline.token());
  co_return answer && answer->status == kUnavailable;
}

// Nobody waits for a place on it.
async::awaitable<Result<std::size_t>> VllmRuntime::busy_slots(std::stop_token) { co_return 0; }

async::awaitable<void> VllmRuntime::stop(async::Duration grace) {
  process::Grace limit{};
  limit.term = grace;
  // Nothing of this object is touched afterwards: once the child is reaped its owner may destroy
  // it.
  co_await child_->stop(limit);
}

}  // namespace werk::engine::vllm
