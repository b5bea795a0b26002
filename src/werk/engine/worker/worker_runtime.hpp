// A worker with its model loaded, as a Runtime: it takes calls through its ChatPort, one at a time.
// Made by WorkerEngine; when it is stopped, its worker ends, or goes back to the engine without its
// model, to load the next one. Loop thread only.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "werk/engine/engine.hpp"
#include "werk/engine/masker.hpp"
#include "werk/engine/worker/worker.hpp"

namespace werk::engine::worker {

// Takes back a worker that holds no model any more.
using Park = std::function<void(std::unique_ptr<Worker> worker)>;

class WorkerRuntime final : public Runtime, public ChatPort {
 public:
  // `park` may be empty: the worker then ends with the runtime.
  WorkerRuntime(std::unique_ptr<Worker> worker, RuntimeFacts facts, std::string model_name,
                Masker masker, Park park, async::Executor executor);
  ~WorkerRuntime() override;

  const RuntimeFacts& facts() const override { return facts_; }
  std::optional<HttpTarget> passthrough(Dialect) const override { return std::nullopt; }
  ChatPort* chat_port() override { return this; }
  async::Event& exited() override { return exited_; }
  std::string exit_reason() const override;
  async::awaitable<Result<std::size_t>> busy_slots(std::stop_token stop) override;
  async::awaitable<void> stop(async::Duration grace) override;

  const ChatProfile& profile() const override { return profile_; }
  const std::string& model_name() const override { return model_name_; }
  async::awaitable<Result<std::unique_ptr<ChatStream>>> chat(std::string body,
                                                             std::stop_token stop) override;
  async::awaitable<Result<std::uint64_t>> count(std::string body, std::stop_token stop) override;

 private:
  void note_end();

  std::unique_ptr<Worker> worker_;
  RuntimeFacts facts_;
  ChatProfile profile_;
  std::string model_name_;
  Masker masker_;
  Park park_;
  async::Event exited_;
  std::string exit_reason_;
  bool stopping_ = false;
};

}  // namespace werk::engine::worker
