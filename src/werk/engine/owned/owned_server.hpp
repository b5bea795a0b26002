// What engines share whose server Werk starts on a private socket with a key of its own: how it is
// reached, its way up, and the part of its runtime that is the same whatever the server. Owned by
// the adapter; a way up that became no runtime leaves no socket behind. Loop thread only.
#pragma once

#include <memory>
#include <span>
#include <stop_token>
#include <string>

#include "werk/async/offload.hpp"
#include "werk/engine/engine.hpp"
#include "werk/engine/masker.hpp"
#include "werk/http/client.hpp"
#include "werk/process/child.hpp"
#include "werk/process/socket_folder.hpp"

namespace werk::engine::owned {

// How a running engine is reached.
struct Reach {
  std::string socket;
  std::string secret;
  std::string alias;

  http::Address address() const;
  // A status call: no body, with the key.
  http::ClientRequest get(std::string target) const;
};

// A fresh connection for each status call: the engine closes idle ones at its own times, and one
// that is kept open would hold up its end.
http::ClientProfile status_profile();

// An engine on its way up. Removes its socket's file unless it became a runtime.
struct Launching {
  StartPlan plan;
  Reach reach;
  Masker masker;      // for what leaves the node
  Masker log_masker;  // hides keys alone
  std::unique_ptr<process::Child> child;
  async::TimePoint since;

  Launching() = default;
  Launching(const Launching&) = delete;
  Launching& operator=(const Launching&) = delete;
  ~Launching();

  // Gives it a socket, a key and its name, and hides what of that and of the user's own words is
  // secret. `known` hides the rest of this machine.
  void prepare(process::SocketFolder& sockets, const std::string& engine, const RuntimeKey& key,
               Masker known, std::span<const std::string> extra_arguments);
  // Starts it. Fails with `draining` or `start_failed`; the log has the whole.
  Status spawn(process::Children& children, process::Command command);
};

// Whether the model's files are there and whole, off the loop.
async::awaitable<Status> verify_files(async::Offload& offload, const StartPlan& plan);

// Stops the source once the event is set; given up when `until` stops.
async::awaitable<void> stop_when_set(async::Event& event, std::stop_source source,
                                     std::stop_token until);

// Between two looks at an engine that comes up: a fiftieth of the elapsed time within these bounds,
// so that waiting adds no more than that to a start, long or short.
struct LookPauses {
  async::Duration least;
  async::Duration most;
};
// Until GET /health answers 200. One look may hang while the engine loads; the start as a whole has
// the limits of whoever asked for it. Fails with `cancelled`.
async::awaitable<Status> wait_for_health(http::Client& client, async::Clock& clock,
                                         async::Executor executor, const Launching& launching,
                                         LookPauses pauses, std::stop_token race);

// A running server of ours. Made once it is ready, destroyed by the runtime cache after exited()
// was set; destroying it earlier kills its group.
class OwnedRuntime : public Runtime {
 public:
  OwnedRuntime(Launching& launching, RuntimeFacts facts, http::Client& client, async::Clock& clock);
  ~OwnedRuntime() override;

  const RuntimeFacts& facts() const override { return facts_; }
  async::Event& exited() override { return child_->exited(); }
  std::string exit_reason() const override;
  async::awaitable<void> stop(async::Duration grace) override;

 protected:
  // What of the masked end of its output tells why it ended.
  virtual std::string telling(std::string_view output) const = 0;
  // OpenAI's chat on its socket; how it counts and what it takes is the adapter's.
  HttpTarget chat_target() const;
  const Reach& reach() const { return reach_; }
  http::Client& client() const { return client_; }
  async::Clock& clock() const { return clock_; }

 private:
  std::unique_ptr<process::Child> child_;
  Reach reach_;
  RuntimeFacts facts_;
  Masker masker_;
  http::Client& client_;
  async::Clock& clock_;
};

}  // namespace werk::engine::owned
