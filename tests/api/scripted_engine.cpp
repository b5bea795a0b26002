#include "tests/api/scripted_engine.hpp"

#include <algorithm>

#include "tests/api/chunk_words.hpp"

namespace werk::test {

class ScriptedEngine::LiveRuntime final : public engine::Runtime {
 public:
  LiveRuntime(ScriptedEngine& engine, const ModelLine& line, engine::RuntimeFacts facts)
      : engine_(engine), line_(line), facts_(std::move(facts)), exited_(engine.executor_) {
    engine_.live_.push_back(this);
  }
  ~LiveRuntime() override { std::erase(engine_.live_, this); }

  const engine::RuntimeFacts& facts() const override { return facts_; }
  std::optional<engine::HttpTarget> passthrough(engine::Dialect dialect) const override {
    const bool messages = dialect == engine::Dialect::anthropic_messages;
    if (messages && !line_.native_messages) return std::nullopt;
    engine::HttpTarget target;
    target.unix_path = engine_.socket_;
    target.path = "/v1/chat/completions";
    if (line_.counts) target.count_path = "/v1/chat/completions/input_tokens";
    if (messages) {
      target.path = "/v1/messages";
      target.count_path = "/v1/messages/count_tokens";
    }
    if (!line_.plain) {  // as llama-server
      target.profile.names_tools_as_objects = false;
      target.profile.tells_stop_when_verbose = true;
      target.profile.reasoning_budget_member = "reasoning_budget_tokens";
      target.profile.reports_progress = true;
    }
    target.profile.takes_stream_options = line_.usage_asked;
    target.profile.output_limit_member = line_.output_limit;
    if (line_.external) target.ownership = engine::Ownership::external;
    target.profile.keeps_earlier_reasoning = line_.keeps_reasoning;
    target.profile.takes_later_system = line_.later_system;
    target.silence = line_.silence;
    target.authorization = "Bearer the-engines-own-key";
    target.model_name = kEngineModel;
    return target;
  }
  async::Event& exited() override { return exited_; }
  std::string exit_reason() const override { return "killed by signal 11"; }
  async::awaitable<Result<std::size_t>> busy_slots(std::stop_token) override {
    co_return std::size_t{0};
  }
  async::awaitable<void> stop(async::Duration) override {
    exited_.set();
    co_return;
  }

 private:
  ScriptedEngine& engine_;
  const ModelLine& line_;
  engine::RuntimeFacts facts_;
  async::Event exited_;
};

ScriptedEngine::ScriptedEngine(async::Executor executor, async::Clock& clock, std::string socket,
                               const std::vector<ModelLine>& models, std::size_t slots)
    : executor_(std::move(executor)),
      clock_(clock),
      socket_(std::move(socket)),
      models_(models),
      slots_(slots) {
  info_.name = "scripted";
  info_.pool = "scripted";
  info_.formats = {"gguf"};
  if (std::ranges::any_of(models, &ModelLine::external))
    info_.ownership = engine::Ownership::external;
}

const ModelLine& ScriptedEngine::line_of(const std::string& id) const {
  return *std::ranges::find(models_, id, &ModelLine::id);
}

Result<engine::StartPlan> ScriptedEngine::plan(const model::Manifest& manifest,
                                               const std::filesystem::path& folder) const {
  if (line_of(manifest.id).start == StartRule::rejected) {
    return fail(ErrorCode::model_unusable,
                "--ctx-size 65536 is more than the 4096 the model was trained with");
  }
  engine::StartPlan plan;
  plan.key = {info_.name, model::identity_of(manifest), "0"};
  plan.manifest = manifest;
  plan.model_folder = folder;
  plan.slots = slots_;
  return plan;
}

async::awaitable<Result<std::unique_ptr<engine::Runtime>>> ScriptedEngine::start(
    engine::StartPlan plan, engine::StartObserver&, std::stop_token stop) {
  const ModelLine& line = line_of(plan.manifest.id);
  ++starting_;
  const bool over = co_await async::sleep_for(clock_, executor_, line.start_time, stop);
  --starting_;
  if (!over) co_return fail(ErrorCode::cancelled, "the start was stopped");
  if (line.start == StartRule::fails) {
    co_return fail(ErrorCode::start_failed, Origin::engine,
                   "the engine ended with status 1 while it started");
  }
  if (line.start == StartRule::unusable) {
    co_return fail(ErrorCode::model_unusable, Origin::engine, "unknown model architecture: 'quux'");
  }
  engine::RuntimeFacts facts;
  facts.slots = slots_;
  facts.context_tokens_per_slot = 4096;
  facts.pid = 4242;
  facts.supports_tools = line.tools;
  facts.supports_images = line.images;
  co_return std::make_unique<LiveRuntime>(*this, line, std::move(facts));
}

void ScriptedEngine::die() {
  for (LiveRuntime* runtime : live_) runtime->exited().set();
}

}  // namespace werk::test
