// The command line as a plain value: which command, its own words, and the node options that were
// given (they may stand before or after the command). Help and version texts are results too. Pure;
// the only file of Werk that knows CLI11 is its source.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "werk/app/bench/plan.hpp"
#include "werk/app/settings.hpp"

namespace werk::app {

enum class CommandId : std::uint8_t {
  serve,
  engine_install,
  engine_list,
  pull,
  import_model,
  list,
  inspect,
  remove,
  launch,
  config,
  config_check,
  ask,
  explain,
  chat,
  doctor,
  service_install,
  service_uninstall,
  ps,
  load,
  unload,
  pin,
  unpin,
  logs,
  stop,
  top,
  bench,
  bench_compare,
};

enum class IfMissing : std::uint8_t { no, yes };
enum class Json : std::uint8_t { no, yes };
// Whether to go on where it can hardly work.
enum class Anyway : std::uint8_t { no, yes };

enum class Reasoning : std::uint8_t { on_a_terminal, shown };
enum class Verbose : std::uint8_t { no, yes };
enum class Now : std::uint8_t { no, yes };

// How a model is asked: run, chat.
struct AskOptions {
  std::string system;
  std::optional<std::uint32_t> max_tokens;
  std::optional<double> temperature;
  Reasoning reasoning = Reasoning::on_a_terminal;
  Verbose verbose = Verbose::no;
};

// How a running node is controlled: unload, logs.
struct ControlOptions {
  bool now = false;     // unload: end its calls
  bool follow = false;  // logs: go on with what comes
  std::uint32_t lines = 200;
};

enum class Once : std::uint8_t { no, yes };

// How the node is watched: top.
struct TopOptions {
  Once once = Once::no;
  std::chrono::milliseconds interval = std::chrono::seconds(1);
};

enum class Warmup : std::uint8_t { no, yes };

// What is measured, and how: bench.
struct BenchOptions {
  std::vector<std::string> models;
  std::vector<std::uint32_t> concurrency;
  std::vector<double> rates;  // requests a second, instead of callers
  std::uint32_t requests = 16;
  std::uint32_t max_tokens = 128;
  std::uint64_t seed = 1;
  bench::Dialect dialect = bench::Dialect::openai;
  bench::EndOfSequence end_of_sequence = bench::EndOfSequence::ends;
  Warmup warmup = Warmup::no;
  std::uint32_t repeat = 0;  // 0: as often as is usual
  std::vector<std::string> against;  // a second server, or one for each model
  std::string prompts;       // a file
  std::uint32_t prompt_tokens = 0;
  std::uint32_t shared_prefix_tokens = 0;
  std::string output;
};

struct CommandLine {
  CommandId command = CommandId::serve;
  std::vector<GivenFlag> flags;
  std::string subject;  // the engine, model, file or client the command is about
  std::string name;     // import, pull: --name
  std::vector<std::string> aliases;
  std::string from;      // engine install: --from
  std::string mmproj;    // import: --mmproj
  std::string file;      // pull: --file
  std::string revision;  // pull: --revision
  IfMissing if_missing = IfMissing::no;
  Json json = Json::no;
  Anyway anyway = Anyway::no;  // launch
  // launch: for the client, what stands behind `--`; import: the paths, or names with --scan; run:
  // the model and the prompt; bench compare: the files
  std::vector<std::string> words;
  bool link = false;  // import
  bool all = false;   // import
  bool scan = false;  // import
  std::string url;    // of a node elsewhere
  AskOptions ask;
  Now now = Now::no;  // service install
  ControlOptions control;
  TopOptions top;
  BenchOptions bench;
};

// What parsing comes to: a command, or a text to print and an exit status (help, version, an error
// with the nearest right name).
struct Parsed {
  std::optional<CommandLine> command;
  std::string text;
  int exit_status = 0;
};

Parsed parse_command_line(int argc, const char* const* argv);

}  // namespace werk::app
