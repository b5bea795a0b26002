// A running vLLM that Werk owns. Made by VllmEngine once the engine is ready; its life is that of
// every OwnedRuntime, and its whole group's. Calls on it aren't bounded here: vLLM queues and
// batches them itself. Loop thread only.
#pragma once

#include <string>

#include "werk/engine/owned/owned_server.hpp"

namespace werk::engine::vllm {

class VllmRuntime final : public owned::OwnedRuntime {
 public:
  using OwnedRuntime::OwnedRuntime;

  std::optional<HttpTarget> passthrough(Dialect dialect) const override;
  async::awaitable<bool> says_dead(std::stop_token stop) override;
  async::awaitable<Result<std::size_t>> busy_slots(std::stop_token stop) override;

 protected:
  std::string telling(std::string_view output) const override;
};

}  // namespace werk::engine::vllm
