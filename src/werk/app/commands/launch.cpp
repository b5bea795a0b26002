#include "werk/app/commands/launch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>

#include "werk/app/node_client.hpp"
#include "werk/app/own_node.hpp"
#include "werk/app/steps.hpp"
#include "werk/app/terminal.hpp"
#include "werk/base/text.hpp"
#include "werk/engine/llama_server/launch.hpp"
#include "werk/process/foreground.hpp"
#include "werk/process/program.hpp"

namespace werk::app {

using namespace std::chrono_literals;

namespace llama = engine::llama_server;

namespace {

constexpr std::string_view kClaude = "claude";
constexpr std::uint64_t kClaudeAnswerTokensMax = 32'000;  // its own default
constexpr auto kStopReserve = 15s;  // for engines to end, on top of the drain limit

// What the client can't be led elsewhere by, and what it must not send instead of the key.
constexpr std::array<std::string_view, 4> kMisleading = {
    "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX",
    "CLAUDE_CODE_USE_FOUNDRY"};
constexpr std::array<std::string_view, 6> kModelVariables = {"ANTHROPIC_MODEL",
                                                             "ANTHROPIC_SMALL_FAST_MODEL",
                                                             "ANTHROPIC_DEFAULT_OPUS_MODEL",
                                                             "ANTHROPIC_DEFAULT_SONNET_MODEL",
                                                             "ANTHROPIC_DEFAULT_HAIKU_MODEL",
                                                             "CLAUDE_CODE_SUBAGENT_MODEL"};
// Nothing leaves the machine that the model doesn't need, and prompts begin alike. A value that the
// person has set stays.
constexpr std::array<std::array<std::string_view, 2>, 3> kManners = {
    {{"DISABLE_TELEMETRY", "1"},
     {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"},
     {"CLAUDE_CODE_ATTRIBUTION_HEADER", "0"}}};

Result<model::InstalledModel> pick_model(const Settings& settings,
                                         const std::filesystem::path& home) {
  const model::Store store(home);
  if (settings.model) return store.find(*settings.model);
  Result<model::Listing> listing = store.list();
  if (!listing) return pass_on(listing);
  if (listing->models.empty()) {
    return fail(ErrorCode::model_not_found,
                "no model is installed; `werk import FILE --name ID` brings one");
  }
  // Of several the first that the client can work with; without one the first, to say why not.
  const auto fit = [&](const model::InstalledModel& model) {
    return check_fitness(model, settings_of_model(settings, model.manifest.id).llama).has_value();
  };
  const auto found = std::ranges::find_if(listing->models, fit);
  if (listing->models.size() == 1 || found == listing->models.end()) return listing->models.front();
  fmt::print(stderr, "werk: {} models are installed, {} is used; --model ID names another\n",
             listing->models.size(), found->manifest.id);
  return *found;
}

Result<std::string> find_claude() {
  const std::string path = process::own_variable("PATH").value_or("/usr/local/bin:/usr/bin:/bin");
  const std::optional<std::string> program = process::find_program(kClaude, path);
  if (program) return *program;
  return fail(ErrorCode::not_found,
              "claude is not in PATH; `npm install -g @anthropic-ai/claude-code` installs it");
}

std::vector<std::string> node_words(const CommandLine& line, const std::string& model) {
  std::vector<std::string> words = serve_words(line, {"--model"});
  words.push_back("--model=" + model);
  const auto is_given = [&](std::string_view flag) {
    return std::ranges::any_of(line.flags, [&](const auto& given) { return given.flag == flag; });
  };
  if (!is_given("--port")) words.emplace_back("--port=0");
  // Names that the client has built in reach the model too.
  if (!is_given("--alias")) words.push_back("--alias=claude-*=" + model);
  return words;
}

}  // namespace

Result<std::uint64_t> check_fitness(const model::InstalledModel& model,
                                    const llama::LlamaServerOptions& options) {
  const model::Manifest& manifest = model.manifest;
  // Of a template of the user's own the engine will tell.
  if (!manifest.chat_template.tools && !options.chat_template) {
    return fail(ErrorCode::unsupported,
                fmt::format("{0} can't be used by claude: its chat template has no place for "
                            "tools, and claude sends them with each prompt. Choose another model "
                            "with --model ID (`werk inspect {0}` shows what is known of this one), "
                            "or say --anyway",
                            manifest.id));
  }
  llama::LaunchSettings launch;
  launch.options = options;
  const auto plan = llama::plan_start(manifest, model.folder, launch);
  if (!plan) return fail(plan.error());
  const std::uint64_t trained = manifest.training_context_tokens;
  const std::uint64_t context =
      plan->context_tokens_per_slot > 0 ? plan->context_tokens_per_slot : trained;
  if (context == 0 || context >= kClaudeFirstPromptTokens) return context;
  std::string way_out = fmt::format("give it more with --ctx-size N, up to {}", trained);
  if (trained < kClaudeFirstPromptTokens) {
    way_out = fmt::format(
        "it was trained with {}, so --ctx-size can't help: choose a model with more by --model ID "
        "(`werk list` shows each one's context)",
        trained);
  }
  return fail(ErrorCode::context_length_exceeded,
              fmt::format("{} can't be used by claude: the first prompt has about {} tokens, and "
                          "a slot of this model gets a context of {}; {}, or say --anyway",
                          manifest.id, kClaudeFirstPromptTokens, context, way_out));
}

std::vector<std::string> claude_environment(std::vector<std::string> own,
                                            const ClientTarget& target) {
  for (const std::string_view name : kMisleading) {
    const std::string head = fmt::format("{}=", name);
    std::erase_if(own, [&](const std::string& entry) { return entry.starts_with(head); });
  }
  own = process::with_variable(std::move(own), "ANTHROPIC_BASE_URL", target.url);
  own = process::with_variable(std::move(own), "ANTHROPIC_API_KEY", target.key);
  for (const std::string_view name : kModelVariables)
    own = process::with_variable(std::move(own), name, target.model);
  std::vector<std::array<std::string, 2>> unless_set;
  for (const auto& [name, value] : kManners)
    unless_set.push_back({std::string(name), std::string(value)});
  if (target.context_tokens > 0) {
    unless_set.push_back({"CLAUDE_CODE_MAX_CONTEXT_TOKENS", std::to_string(target.context_tokens)});
    // What it keeps free for an answer is no more of a small context than that.
    const std::uint64_t answer = std::min(kClaudeAnswerTokensMax, target.context_tokens / 4);
    unless_set.push_back({"CLAUDE_CODE_MAX_OUTPUT_TOKENS", std::to_string(answer)});
  }
  for (const auto& [name, value] : unless_set) {
    if (!process::variable_in(own, name)) own = process::with_variable(std::move(own), name, value);
  }
  return own;
}

int launch_command(const CommandLine& line, const Settings& settings,
                   const std::filesystem::path& home) {
  if (line.subject != kClaude) {
    return failed({ErrorCode::invalid_request,
                   fmt::format("launch knows claude, not {}", printable(line.subject))});
  }
  const Result<model::InstalledModel> model = pick_model(settings, home);
  if (!model) return failed(model.error());
  const auto fit = check_fitness(*model, settings_of_model(settings, model->manifest.id).llama);
  if (!fit && line.anyway == Anyway::no) return failed(fit.error());
  if (!fit) fmt::print(stderr, "werk: {}\n", fit.error().message);
  const Result<std::string> program = find_claude();
  if (!program) return failed(program.error());
  const std::string& id = model->manifest.id;
  process::Foreground client{*program, std::string(kClaude), line.words, {}};
  const auto lead_to = [&](const NodeAddress& node) {
    const std::string key = node.key.empty() ? "werk" : node.key;
    const ClientTarget target{node.url, key, id, fit.value_or(0)};
    client.environment = claude_environment(process::own_environment(), target);
  };
  if (const auto running = home_node(settings, home)) {
    note_idle_options(line, running->url);
    lead_to(*running);
    return failed(process::become(std::move(client)));
  }
  OwnNode node(home, node_words(line, id), "launch.log");
  const Result<std::string> url = node.start();
  if (!url) return failed(url.error());
  lead_to({*url, settings.keys.empty() ? std::string() : settings.keys.front()});
  const Result<int> status = process::run_in_foreground(std::move(client));
  node.stop(settings.drain_timeout + kStopReserve);
  return status ? *status : failed(status.error());
}

}  // namespace werk::app
