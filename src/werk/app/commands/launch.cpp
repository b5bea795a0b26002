#include "werk/app/commands/launch.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <optional>

#include "werk/app/steps.hpp"
#include "werk/async/loop.hpp"
#include "werk/async/task_group.hpp"
#include "werk/base/text.hpp"
#include "werk/engine/llama_server/launch.hpp"
#include "werk/process/child.hpp"
#include "werk/process/foreground.hpp"
#include "werk/process/node_lock.hpp"
#include "werk/process/program.hpp"
#include "werk/process/signals.hpp"

namespace werk::app {

using namespace std::chrono_literals;

namespace llama = engine::llama_server;

namespace {

constexpr std::string_view kClaude = "claude";
constexpr auto kLook = 20ms;            // between two looks whether the node serves
constexpr auto kStopReserve = 15s;      // for engines to end, on top of the drain limit
constexpr std::size_t kShownLines = 8;  // of the node's log, where it didn't start

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

int failed(const Error& error) {
  fmt::print(stderr, "werk: {}\n", error.message);
  return 1;
}

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
    return check_fitness(model, settings.llama).has_value();
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

// A node that runs already has options of its own.
void note_idle_options(const CommandLine& line, const std::string& url) {
  for (const GivenFlag& given : line.flags) {
    if (given.flag == "--model" || given.flag == "--model-home") continue;
    fmt::print(stderr, "werk: a node serves this home already at {}; {} has no effect on it\n", url,
               given.flag);
  }
}

// An address that is listened on everywhere is reached on this machine.
std::string reachable(std::string url) {
  for (const auto& [everywhere, here] :
       {std::pair<std::string_view, std::string_view>{"//0.0.0.0:", "//127.0.0.1:"},
        {"//[::]:", "//[::1]:"}}) {
    const std::size_t at = url.find(everywhere);
    if (at != std::string::npos) url.replace(at, everywhere.size(), here);
  }
  return url;
}

std::vector<std::string> node_words(const CommandLine& line, const std::string& model) {
  std::vector<std::string> words = {"serve", "--model=" + model};
  const auto is_given = [&](std::string_view flag) {
    return std::ranges::any_of(line.flags, [&](const auto& given) { return given.flag == flag; });
  };
  if (!is_given("--port")) words.emplace_back("--port=0");
  // Names that the client has built in reach the model too.
  if (!is_given("--alias")) words.push_back("--alias=claude-*=" + model);
  for (const GivenFlag& given : line.flags) {
    if (given.flag == "--model") continue;
    const auto option =
        std::ranges::find_if(options(), [&](const Option& one) { return one.flag == given.flag; });
    const bool bare = option != options().end() && option->shape == Shape::flag;
    words.push_back(bare ? given.flag : given.flag + "=" + given.value);
  }
  return words;
}

// A node of our own, from its start until it has ended.
class OwnNode {
 public:
  OwnNode(std::filesystem::path home, std::vector<std::string> words)
      : home_(std::move(home)),
        words_(std::move(words)),
        clock_(loop_.executor()),
        children_(loop_.executor(), clock_),
        tasks_(loop_.executor()) {}

  // Its address, once it serves.
  Result<std::string> start() {
    Status spawned = spawn();
    if (!spawned) return pass_on(spawned);
    const process::SignalWatch signals(loop_.executor(), [this](int) { stop_.request_stop(); });
    tasks_.spawn(await_serving());
    loop_.run_until([this] { return tasks_.running() == 0; });
    if (!problem_) return url_;
    stop(0s);
    return fail(*problem_);
  }

  void stop(async::Duration limit) {
    if (!child_) return;
    tasks_.spawn(end(limit));
    loop_.run_until([this] { return tasks_.running() == 0; });
  }

 private:
  std::string log_path() const { return (home_ / "run" / "launch.log").string(); }

  Status spawn() {
    std::error_code error;
    std::filesystem::create_directories(home_ / "run", error);
    const process::Descriptor log(
        ::open(log_path().c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    if (!log) {
      return fail(ErrorCode::io,
                  fmt::format("cannot write {}: {}", log_path(), std::strerror(errno)));
    }
    process::Command command;
    command.program = std::filesystem::read_symlink("/proc/self/exe", error).string();
    command.arguments = words_;
    command.environment = process::own_environment();
    command.descriptors = {{log.get(), STDOUT_FILENO}, {log.get(), STDERR_FILENO}};
    auto child = children_.spawn(std::move(command));
    if (!child) return pass_on(child);
    child_ = std::move(*child);
    return {};
  }

  async::awaitable<void> await_serving() {
    while (true) {
      const auto info = process::NodeLock::running(home_.string());
      if (info && info->pid == child_->pid()) {
        url_ = info->address;
        co_return;
      }
      async::Deadline pause(clock_, kLook, stop_.get_token());
      const bool ended = co_await child_->exited().wait(pause.token());
      if (ended) {
        problem_ =
            Error{ErrorCode::start_failed, fmt::format("the node did not start ({}):\n{}",
                                                       child_->status()->text(), end_of_log())};
        co_return;
      }
      if (stop_.stop_requested()) {
        problem_ = Error{ErrorCode::cancelled, "stopped while the node started"};
        co_return;
      }
    }
  }

  async::awaitable<void> end(async::Duration limit) {
    const process::Grace grace{limit};
    co_await child_->stop(grace);
  }

  std::string end_of_log() const {
    std::ifstream file(log_path());
    std::vector<std::string> lines;
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    if (lines.size() > kShownLines) lines.erase(lines.begin(), lines.end() - kShownLines);
    return printable(fmt::format("{}", fmt::join(lines, "\n")));
  }

  std::filesystem::path home_;
  std::vector<std::string> words_;
  async::Loop loop_;
  async::SteadyClock clock_;
  process::Children children_;
  async::TaskGroup tasks_;
  std::stop_source stop_;
  std::unique_ptr<process::Child> child_;
  std::string url_;
  std::optional<Error> problem_;
};

}  // namespace

Status check_fitness(const model::InstalledModel& model, const llama::LlamaServerOptions& options) {
  const model::Manifest& manifest = model.manifest;
  if (!manifest.chat_template.tools) {
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
  if (context == 0 || context >= kClaudeFirstPromptTokens) return {};
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
  own = with_variable(std::move(own), "ANTHROPIC_BASE_URL", target.url);
  own = with_variable(std::move(own), "ANTHROPIC_API_KEY", target.key);
  for (const std::string_view name : kModelVariables)
    own = with_variable(std::move(own), name, target.model);
  for (const auto& [name, value] : kManners) {
    if (!process::variable_in(own, name)) own = with_variable(std::move(own), name, value);
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
  const Status fit = check_fitness(*model, settings.llama);
  if (!fit && line.anyway == Anyway::no) return failed(fit.error());
  if (!fit) fmt::print(stderr, "werk: {}\n", fit.error().message);
  const Result<std::string> program = find_claude();
  if (!program) return failed(program.error());
  const std::string& id = model->manifest.id;
  process::Foreground client{*program, std::string(kClaude), line.words, {}};
  const auto lead_to = [&](const std::string& url) {
    const std::string key = settings.keys.empty() ? "werk" : settings.keys.front();
    client.environment = claude_environment(process::own_environment(), {reachable(url), key, id});
  };
  if (const auto running = process::NodeLock::running(home.string())) {
    note_idle_options(line, running->address);
    lead_to(running->address);
    return failed(process::become(std::move(client)));
  }
  OwnNode node(home, node_words(line, id));
  const Result<std::string> url = node.start();
  if (!url) return failed(url.error());
  lead_to(*url);
  const Result<int> status = process::run_in_foreground(std::move(client));
  node.stop(settings.drain_timeout + kStopReserve);
  return status ? *status : failed(status.error());
}

}  // namespace werk::app
