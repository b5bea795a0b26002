// A running llama-server. Made by LlamaServerEngine once the engine is ready; its life is that of
// every OwnedRuntime. Answers to status calls are bounded in time and size. Loop thread only.
#pragma once

#include <string>

#include "werk/engine/owned/owned_server.hpp"

namespace werk::engine::llama_server {

class LlamaServerRuntime final : public owned::OwnedRuntime {
 public:
  using OwnedRuntime::OwnedRuntime;

  std::optional<HttpTarget> passthrough(Dialect dialect) const override;
  async::awaitable<Result<std::size_t>> busy_slots(std::stop_token stop) override;

 protected:
  std::string telling(std::string_view output) const override;
};

}  // namespace werk::engine::llama_server
