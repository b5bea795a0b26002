#include "werk/engine/owned/owned_server.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "werk/base/digest.hpp"
#include "werk/base/log.hpp"
#include "werk/model/store.hpp"

namespace werk::engine::owned {
namespace {

constexpr std::size_t kStatusBytesMax = 1024 * 1024;
constexpr std::size_t kSecretBytes = 24;
constexpr std::chrono::seconds kAttemptLimit{5};
constexpr int kPauseShare = 50;

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

http::ClientProfile status_profile() {
  http::ClientProfile profile;
  profile.reuse = false;
  return profile;
}

Launching::~Launching() {
  if (child != nullptr) unlink(reach.socket.c_str());
}

void Launching::prepare(process::SocketFolder& sockets, const std::string& engine,
                        const RuntimeKey& key, Masker known,
                        std::span<const std::string> extra_arguments) {
  reach.socket = sockets.next_socket(engine);
  reach.secret = random_hex(kSecretBytes);
  reach.alias = key.alias();
  masker = std::move(known);
  masker.hide(reach.socket, "<socket>");
  masker.hide(reach.secret, "<key>");
  log_masker.hide(reach.secret, "<key>");
  for (const std::string& secret : secrets_in(extra_arguments)) {
    masker.hide(secret, "***");
    log_masker.hide(secret, "***");
  }
}

Status Launching::spawn(process::Children& children, process::Command command) {
  // An engine refuses to bind where a file lies.
  unlink(reach.socket.c_str());
  auto spawned = children.spawn(std::move(command));
  if (spawned) {
    child = std::move(*spawned);
    return {};
  }
  log::error("{}: {}", plan.key.text(), spawned.error().message);
  const ErrorCode code =
      spawned.error().code == ErrorCode::draining ? ErrorCode::draining : ErrorCode::start_failed;
  return fail(code, masker.apply(spawned.error().message));
}

async::awaitable<Status> verify_files(async::Offload& offload, const StartPlan& plan) {
  const model::InstalledModel installed{plan.manifest, plan.model_folder};
  const auto look = [&installed] { return model::verify(installed); };
  co_return co_await offload.run(look);
}

async::awaitable<void> stop_when_set(async::Event& event, std::stop_source source,
                                     std::stop_token until) {
  const bool is_set = co_await event.wait(until);
  if (is_set) source.request_stop();
}

async::awaitable<Status> wait_for_health(http::Client& client, async::Clock& clock,
                                         async::Executor executor, const Launching& launching,
                                         LookPauses pauses, std::stop_token race) {
  while (!race.stop_requested()) {
    async::Deadline deadline(clock, kAttemptLimit, race);
    auto answer = co_await client.fetch(launching.reach.address(), launching.reach.get("/health"),
                                        kStatusBytesMax, deadline.token());
    if (answer && answer->status == 200) co_return Status();
    const async::Duration elapsed = clock.now() - launching.since;
    const auto pause =
        std::clamp<async::Duration>(elapsed / kPauseShare, pauses.least, pauses.most);
    co_await async::sleep_for(clock, executor, pause, race);
  }
  co_return fail(ErrorCode::cancelled, "the start was stopped");
}

OwnedRuntime::OwnedRuntime(Launching& launching, RuntimeFacts facts, http::Client& client,
                           async::Clock& clock)
    : child_(std::move(launching.child)),
      reach_(launching.reach),
      facts_(std::move(facts)),
      masker_(launching.masker),
      client_(client),
      clock_(clock) {}

OwnedRuntime::~OwnedRuntime() {
  // The engine leaves the file behind.
  unlink(reach_.socket.c_str());
}

HttpTarget OwnedRuntime::chat_target() const {
  HttpTarget target;
  target.unix_path = reach_.socket;
  target.path = "/v1/chat/completions";
  target.authorization = fmt::format("Bearer {}", reach_.secret);
  target.model_name = reach_.alias;
  return target;
}

std::string OwnedRuntime::exit_reason() const {
  const auto status = child_->status();
  const std::string lines = telling(masker_.apply(child_->output_tail()));
  const std::string how = status ? status->text() : "still running";
  return lines.empty() ? how : fmt::format("{}: {}", how, lines);
}

async::awaitable<void> OwnedRuntime::stop(async::Duration grace) {
  process::Grace limit{};
  limit.term = grace;
  // Nothing of this object is touched afterwards: once the child is reaped its owner may destroy
  // it.
  co_await child_->stop(limit);
}

}  // namespace werk::engine::owned
