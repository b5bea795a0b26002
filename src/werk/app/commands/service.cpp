#include "werk/app/commands/service.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>

#include "werk/app/own_node.hpp"
#include "werk/app/steps.hpp"
#include "werk/app/terminal.hpp"
#include "werk/base/text.hpp"
#include "werk/process/node_lock.hpp"
#include "werk/process/program.hpp"

namespace werk::app {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

namespace {

constexpr std::string_view kUnit = "werk.service";
constexpr std::string_view kMark = "# Written by `werk service install`, which replaces it.";
constexpr auto kStopReserve = 20s;  // for engines to end, on top of the drain limit
constexpr auto kSystemctlLimit = 60s;

Result<fs::path> unit_file() {
  std::string folder = process::own_variable("XDG_CONFIG_HOME").value_or("");
  if (!folder.starts_with('/')) {
    const std::string user = process::own_variable("HOME").value_or("");
    if (!user.starts_with('/')) {
      return fail(ErrorCode::io, "there is no home folder to put the unit into; set HOME");
    }
    folder = user + "/.config";
  }
  return fs::path(folder) / "systemd" / "user" / kUnit;
}

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// Ours, or none.
Status check_ours(const fs::path& file) {
  std::error_code error;
  if (!fs::exists(fs::symlink_status(file, error)) || read_file(file).starts_with(kMark)) return {};
  return fail(ErrorCode::conflict,
              fmt::format("{} was not written by Werk and is left as it is; move it away first",
                          file.string()));
}

Status write_file(const fs::path& file, const std::string& text) {
  std::error_code error;
  fs::create_directories(file.parent_path(), error);
  const fs::path draft = file.string() + ".new";
  std::ofstream out(draft, std::ios::binary | std::ios::trunc);
  out << text;
  out.close();
  if (out) fs::rename(draft, file, error);
  if (out && !error) return {};
  return fail(ErrorCode::io,
              fmt::format("cannot write {}: {}", file.string(),
                          error ? error.message() : std::string(std::strerror(errno))));
}

// One word of a unit's line: quotes, specifiers and (but for the program) variables are literal.
std::string quoted(std::string_view word, bool is_program) {
  std::string text = "\"";
  for (const char c : word) {
    if (c == '"' || c == '\\') text += '\\';
    if (c == '%' || (c == '$' && !is_program)) text += c;
    text += c;
  }
  return text + '"';
}

bool has_control(std::string_view text) {
  return std::ranges::any_of(text, [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

// A service runs in another folder than the person.
void make_absolute(std::vector<std::string>& words) {
  for (std::string& word : words) {
    const std::size_t equals = word.find('=');
    const auto option = std::ranges::find_if(
        options(), [&](const Option& one) { return one.flag == word.substr(0, equals); });
    if (equals == std::string::npos || option == options().end()) continue;
    if (option->takes != "FILE" && option->takes != "DIR") continue;
    std::error_code error;
    const fs::path whole = fs::absolute(word.substr(equals + 1), error);
    if (!error) word = word.substr(0, equals + 1) + whole.lexically_normal().string();
  }
}

// What is set in this shell and would be missed by the service.
void note_variables(const fs::path& home) {
  std::vector<std::string> names;
  for (const Option& option : options()) {
    if (option.variable.empty() || option.variable == "WERK_HOME") continue;
    if (process::own_variable(option.variable)) names.emplace_back(option.variable);
  }
  if (names.empty()) return;
  fmt::print(
      "Not in the unit, though set here: {}. Put what the service needs into\n{} (or, for "
      "variables, {}, mode 0600).\n",
      fmt::join(names, ", "), (home / "werk.toml").string(), (home / "environment").string());
}

// `systemctl --user` with these words; its own words where it fails.
Status systemctl(StepRunner& runner, const std::string& program, std::vector<std::string> words) {
  words.insert(words.begin(), "--user");
  Step step;
  step.program = program;
  step.arguments = std::move(words);
  step.environment = process::own_environment();
  step.limit = kSystemctlLimit;
  Status done = runner.run(std::move(step));
  // The last lines of what it printed are part of the message.
  if (!done) std::ranges::replace(done.error().message, '\n', ' ');
  return done;
}

std::optional<std::string> find_systemctl() {
  return process::find_program("systemctl", process::own_variable("PATH").value_or(""));
}

Status start(StepRunner& runner, const std::string& program, Now now) {
  Status done = systemctl(runner, program, {"daemon-reload"});
  if (done) done = systemctl(runner, program, {"enable", std::string(kUnit)});
  // One that runs already gets the new options.
  if (done && now == Now::yes) done = systemctl(runner, program, {"restart", std::string(kUnit)});
  return done;
}

std::string by_hand(Now now) {
  return fmt::format("systemctl --user daemon-reload && systemctl --user enable {}{}",
                     now == Now::yes ? "--now " : "", kUnit);
}

}  // namespace

Result<std::string> unit_text(const ServiceUnit& unit) {
  std::vector<std::string> words(unit.words.begin(), unit.words.end());
  words.push_back(unit.program);
  words.push_back(unit.home.string());
  if (const auto bad = std::ranges::find_if(words, has_control); bad != words.end()) {
    return fail(ErrorCode::invalid_request,
                fmt::format("a unit can't hold \"{}\" with a line end or another control character",
                            printable(*bad)));
  }
  std::string line = quoted(unit.program, true);
  for (const std::string& word : unit.words) line += " " + quoted(word, false);
  std::string variables_file = (unit.home / "environment").string();
  for (std::size_t at = 0; (at = variables_file.find('%', at)) != std::string::npos; at += 2)
    variables_file.insert(at, 1, '%');
  const auto stop = std::chrono::ceil<std::chrono::seconds>(unit.drain) + kStopReserve;
  std::string home = quoted("WERK_HOME=" + unit.home.string(), true);
  return fmt::format(R"({}
# Settings belong into werk.toml in the home, keys and other variables into the EnvironmentFile.
[Unit]
Description=Werk, a local inference node

[Service]
Type=notify
NotifyAccess=main
ExecStart={}
Environment={}
EnvironmentFile=-{}
KillMode=mixed
TimeoutStopSec={}
Restart=on-failure
RestartSec=5
RestartPreventExitStatus=2

[Install]
WantedBy=default.target
)",
                     kMark, line, home, variables_file, stop.count());
}

int service_install_command(const CommandLine& line, const Settings& settings,
                            const fs::path& home) {
  const auto file = unit_file();
  if (!file) return failed(file.error());
  Status ours = check_ours(*file);
  if (!ours) return failed(ours.error());
  std::vector<std::string> words = serve_words(line, {"--model-home"});
  make_absolute(words);
  std::error_code error;
  ServiceUnit unit;
  unit.program = fs::read_symlink("/proc/self/exe", error).string();
  unit.words = words;
  unit.home = fs::absolute(home, error);
  unit.drain = settings.drain_timeout;
  const auto text = unit_text(unit);
  if (!text) return failed(text.error());
  Status written = write_file(*file, *text);
  if (!written) return failed(written.error());
  fmt::print("{} is written.\n", file->string());
  note_variables(home);
  const auto running = process::NodeLock::running(home.string());
  const auto program = find_systemctl();
  if (!program) {
    fmt::print("systemctl is not here; where systemd runs: {}\n", by_hand(line.now));
    return line.now == Now::yes ? 1 : 0;
  }
  StepRunner runner{fs::path()};
  Status started = start(runner, *program, line.now);
  if (!started) {
    fmt::print(stderr, "werk: the unit is written, but systemd didn't take it: {}; try `{}`\n",
               started.error().message, by_hand(line.now));
    return 1;
  }
  if (line.now == Now::no) {
    fmt::print("It starts at your next login; `systemctl --user start werk` starts it now.\n");
    if (running)
      fmt::print("A node (process {}) serves this home already; end it before.\n", running->pid);
  } else {
    fmt::print("It runs; `journalctl --user -u werk -f` shows its log.\n");
  }
  fmt::print("`loginctl enable-linger` lets it run while you are not logged in.\n");
  return 0;
}

int service_uninstall_command() {
  const auto file = unit_file();
  if (!file) return failed(file.error());
  std::error_code error;
  if (!fs::exists(*file, error)) {
    return failed(
        {ErrorCode::not_found, fmt::format("there is no service to remove ({})", file->string())});
  }
  Status ours = check_ours(*file);
  if (!ours) return failed(ours.error());
  const auto program = find_systemctl();
  std::optional<StepRunner> runner;
  if (program) {
    runner.emplace(fs::path());
    Status stopped = systemctl(*runner, *program, {"disable", "--now", std::string(kUnit)});
    if (!stopped) {
      fmt::print(stderr, "werk: systemd did not stop it: {}\n", stopped.error().message);
    }
  }
  fs::remove(*file, error);
  if (error) {
    return failed(
        {ErrorCode::io, fmt::format("cannot remove {}: {}", file->string(), error.message())});
  }
  fmt::print("{} is removed; models and settings stay.\n", file->string());
  if (runner) {
    // Without it systemd only remembers a unit that is gone.
    [[maybe_unused]] const Status forgotten = systemctl(*runner, *program, {"daemon-reload"});
  }
  return 0;
}

}  // namespace werk::app
