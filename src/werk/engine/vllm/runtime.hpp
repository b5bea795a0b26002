// A running vLLM that Werk owns. Owns its child and its socket's file; made by VllmEngine once the
// engine is ready, destroyed by the runtime cache after exited() was set (destroying it earlier
// kills the child's whole group). Calls on it aren't bounded here: vLLM queues and batches them
// itself. Loop thread only.
#pragma once

#include <memory>
#include <string>

#include "werk/engine/engine.hpp"
#include "werk/engine/masker.hpp"
#include "werk/http/client.hpp"
#include "werk/process/child.hpp"

namespace werk::engine::vllm {

// How a running engine is reached.
struct Reach {
  std::string socket;
  std::string secret;
  std::string alias;

  http::Address address() const;
  // A status call: no body, with the key.
  http::ClientRequest get(std::string target) const;
};

// How vLLM takes what OpenAI's dialect leaves open; the same for remote ones.
ChatProfile chat_profile();

// What its chat stream is like apart from where it is: path, how to count, profile.
HttpTarget chat_target();

class VllmRuntime final : public Runtime {
 public:
  VllmRuntime(std::unique_ptr<process::Child> child, Reach reach, RuntimeFacts facts, Masker masker,
              http::Client& client, async::Clock& clock);
  ~VllmRuntime() override;

  const RuntimeFacts& facts() const override { return facts_; }
  std::optional<HttpTarget> passthrough(Dialect dialect) const override;
  async::Event& exited() override { return child_->exited(); }
  std::string exit_reason() const override;
  async::awaitable<bool> says_dead(std::stop_token stop) override;
  async::awaitable<Result<std::size_t>> busy_slots(std::stop_token stop) override;
  async::awaitable<void> stop(async::Duration grace) override;

 private:
  std::unique_ptr<process::Child> child_;
  Reach reach_;
  RuntimeFacts facts_;
  Masker masker_;
  http::Client& client_;
  async::Clock& clock_;
};

}  // namespace werk::engine::vllm
