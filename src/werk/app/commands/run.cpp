#include "werk/app/commands/run.hpp"

#include <fmt/format.h>

#include <cstdio>

#include "werk/app/commands/launch.hpp"
#include "werk/app/commands/models.hpp"
#include "werk/app/engine_install.hpp"
#include "werk/app/node.hpp"
#include "werk/app/pull.hpp"
#include "werk/model/home.hpp"
#include "werk/process/program.hpp"

namespace werk::app {
namespace {

constexpr int kUsageStatus = 2;

int complain(const Error& error, int status) {
  fmt::print(stderr, "werk: {}\n", error.message);
  return status;
}

Result<std::filesystem::path> home_of(const Settings& settings) {
  const auto environment = [&](const std::string& name) -> std::optional<std::string> {
    if (name == "WERK_HOME" && settings.home) return settings.home;
    return process::own_variable(name);
  };
  return model::home_folder(environment, std::filesystem::current_path());
}

int run_command(const CommandLine& line, const Settings& settings,
                const std::filesystem::path& home) {
  switch (line.command) {
    case CommandId::serve: return serve(settings, home);
    case CommandId::engine_install: return engine_install_command(line, home);
    case CommandId::engine_list: return engine_list_command(line, home);
    case CommandId::pull: return pull_command(line, home);
    case CommandId::import_model: return import_command(line, home);
    case CommandId::list: return list_command(line, home);
    case CommandId::inspect: return inspect_command(line, home);
    case CommandId::remove: return remove_command(line, home);
    case CommandId::launch: return launch_command(line, settings, home);
  }
  return kUsageStatus;
}

}  // namespace

int run(int argc, const char* const* argv) {
  const Parsed parsed = parse_command_line(argc, argv);
  if (!parsed.command) {
    fmt::print(parsed.exit_status == 0 ? stdout : stderr, "{}", parsed.text);
    return parsed.exit_status;
  }
  const auto settings = read_settings(parsed.command->flags, process::own_variable);
  if (!settings) return complain(settings.error(), kUsageStatus);
  const auto home = home_of(*settings);
  if (!home) return complain(home.error(), kUsageStatus);
  return run_command(*parsed.command, *settings, *home);
}

}  // namespace werk::app
