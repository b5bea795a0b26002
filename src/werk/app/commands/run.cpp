#include "werk/app/commands/run.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>

#include "werk/app/commands/ask.hpp"
#include "werk/app/commands/bench.hpp"
#include "werk/app/commands/chat.hpp"
#include "werk/app/commands/config.hpp"
#include "werk/app/commands/control.hpp"
#include "werk/app/commands/doctor.hpp"
#include "werk/app/commands/explain.hpp"
#include "werk/app/commands/import.hpp"
#include "werk/app/commands/launch.hpp"
#include "werk/app/commands/models.hpp"
#include "werk/app/commands/remove.hpp"
#include "werk/app/commands/service.hpp"
#include "werk/app/commands/top.hpp"
#include "werk/app/engine_install.hpp"
#include "werk/app/node.hpp"
#include "werk/app/pull.hpp"
#include "werk/model/home.hpp"
#include "werk/process/program.hpp"

namespace werk::app {
namespace {

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

// What a node runs by must be sound; a command that needs no more than the home says only that
// something isn't.
bool runs_by_settings(CommandId command) {
  return command == CommandId::serve || command == CommandId::launch || command == CommandId::ask ||
         command == CommandId::chat || command == CommandId::config ||
         command == CommandId::service_install || command == CommandId::explain;
}

// Whether the command may go on.
bool check_file(const ConfigFile& file, CommandId command) {
  if (file.faults.empty()) return true;
  if (!runs_by_settings(command)) {
    fmt::print(stderr, "werk: {} has faults; `werk config check` shows them\n", file.path);
    return true;
  }
  for (const Fault& fault : file.faults) fmt::print(stderr, "werk: {}\n", fault_text(file, fault));
  return false;
}

int run_command(const CommandLine& line, const Settings& settings,
                const std::filesystem::path& home) {
  switch (line.command) {
    case CommandId::serve: return serve(settings, home);
    case CommandId::engine_install: return engine_install_command(line, home);
    case CommandId::engine_list: return engine_list_command(line, home);
    case CommandId::pull: return pull_command(line, home);
    case CommandId::import_model: return import_command(line, home);
    case CommandId::list: return list_command(line, settings, home);
    case CommandId::inspect: return inspect_command(line, home);
    case CommandId::remove: return remove_command(line, settings, home);
    case CommandId::launch: return launch_command(line, settings, home);
    case CommandId::config: return config_command(line, settings);
    case CommandId::config_check: return config_check_command(line);
    case CommandId::ask: return ask_command(line, settings, home);
    case CommandId::explain: return explain_command(line, settings, home);
    case CommandId::chat: return chat_command(line, settings, home);
    case CommandId::doctor: return doctor_command(line, settings, home);
    case CommandId::service_install: return service_install_command(line, settings, home);
    case CommandId::service_uninstall: return service_uninstall_command();
    case CommandId::ps: return ps_command(line, settings, home);
    case CommandId::load: return load_command(line, settings, home);
    case CommandId::unload: return unload_command(line, settings, home);
    case CommandId::pin:
    case CommandId::unpin: return pin_command(line, settings, home);
    case CommandId::logs: return logs_command(line, settings, home);
    case CommandId::stop: return stop_command(line, settings, home);
    case CommandId::top: return top_command(line, settings, home);
    case CommandId::bench: return bench_command(line, settings, home);
    case CommandId::bench_compare: return bench_compare_command(line);
  }
  return kUsageStatus;
}

int run_words(int argc, const char* const* argv) {
  const Parsed parsed = parse_command_line(argc, argv);
  if (!parsed.command) {
    fmt::print(parsed.exit_status == 0 ? stdout : stderr, "{}", parsed.text);
    return parsed.exit_status;
  }
  if (parsed.command->command == CommandId::config_check)
    return config_check_command(*parsed.command);
  const auto settings = load_settings(parsed.command->flags, process::own_variable);
  if (!settings) return complain(settings.error(), kUsageStatus);
  if (!check_file(settings->file, parsed.command->command)) return 1;
  const auto home = home_of(*settings);
  if (!home) return complain(home.error(), kUsageStatus);
  return run_command(*parsed.command, *settings, *home);
}

}  // namespace

int run(int argc, const char* const* argv) {
  int status = 1;
  try {
    status = run_words(argc, argv);
  } catch (const std::exception& error) {
    // Printing throws where a disk is full; other libraries where memory is.
    return complain({ErrorCode::io, error.what()}, 1);
  }
  if (std::fflush(stdout) != 0 && status == 0) {
    return complain(
        {ErrorCode::io, fmt::format("cannot write to standard output: {}", std::strerror(errno))},
        1);
  }
  return status;
}

}  // namespace werk::app
