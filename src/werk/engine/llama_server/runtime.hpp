// A running llama-server. Owns its child and its socket's file; made by LlamaServerEngine once the
// engine is ready, destroyed by the runtime cache after exited() was set (destroying it earlier
// kills the child). Answers to status calls are bounded in time and size. Loop thread only.
#pragma once

#include <memory>
#include <string>

#include "werk/engine/engine.hpp"
#include "werk/engine/llama_server/failure.hpp"
#include "werk/http/client.hpp"
#include "werk/process/child.hpp"

namespace werk::engine::llama_server {

// How a running engine is reached.
struct Reach {
  std::string socket;
  std::string secret;
  std::string alias;

  http::Address address() const;
  // A status call: no body, with the key.
  http::ClientRequest get(std::string target) const;
};

class LlamaServerRuntime final : public Runtime {
 public:
  LlamaServerRuntime(std::unique_ptr<process::Child> child, Reach reach, RuntimeFacts facts,
                     Masker masker, http::Client& client, async::Clock& clock);
  ~LlamaServerRuntime() override;

  const RuntimeFacts& facts() const override { return facts_; }
  std::optional<HttpTarget> passthrough(Dialect dialect) const override;
  async::Event& exited() override { return child_->exited(); }
  std::string exit_reason() const override;
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

}  // namespace werk::engine::llama_server
