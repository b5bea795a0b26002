// What commands that fetch and build have in common: programs run one after the other, with their
// output in a log and an end by Ctrl-C that leaves nothing running; lines for the person at the
// terminal; a lock and a scratch folder that survive no crash. For commands only: everything here
// blocks its caller and runs a loop of its own. Main thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "werk/async/loop.hpp"
#include "werk/base/result.hpp"
#include "werk/process/captured.hpp"
#include "werk/process/descriptor.hpp"
#include "werk/process/signals.hpp"

namespace werk::app {

// A line stays; a progress line may be replaced by the next one.
enum class Note : std::uint8_t { line, progress };
using Say = std::function<void(Note, std::string_view)>;

// Writes to a terminal or a file; progress only to a terminal.
Say say_to(std::FILE* file);

struct Step {
  std::string program;
  std::vector<std::string> arguments;
  std::vector<std::string> environment;  // complete
  std::filesystem::path folder = {};     // to run in; empty: ours
  std::function<void(std::string_view)> on_line = {};
  std::chrono::seconds limit = std::chrono::seconds(0);  // 0: none
};

class StepRunner {
 public:
  // Writes what programs print to `log_file`, if that can be written; empty: nowhere. As long as
  // the runner lives, SIGINT and SIGTERM end its steps and not this process.
  explicit StepRunner(const std::filesystem::path& log_file);

  // Fails as spawn() does, with `cancelled` after SIGINT or SIGTERM, with `io` when the limit
  // passed or the status isn't 0; that message ends with the last lines of the output.
  Status run(Step step);
  // The same, and gives what was printed, both streams after each other.
  Result<std::string> capture(Step step);

 private:
  Result<process::Captured> run_to_end(Step step);

  async::Loop loop_;
  async::SteadyClock clock_;
  process::Children children_;
  // From the first step to the last: what comes between two of them ends the next one.
  std::stop_source stop_;
  process::SignalWatch signals_;
  std::ofstream log_;
};

// Held by one process at a time, across processes; freed by the system however the holder ends.
class FolderLock {
 public:
  // Makes the folder. Says so once if somebody else holds the lock, and waits.
  static Result<FolderLock> take(const std::filesystem::path& folder, const Say& say);

 private:
  explicit FolderLock(process::Descriptor descriptor) : descriptor_(std::move(descriptor)) {}
  process::Descriptor descriptor_;
};

// A folder below `parent` that is removed with the object. Those of dead processes are removed
// first; the caller holds the parent's lock.
class ScratchFolder {
 public:
  static Result<ScratchFolder> make(const std::filesystem::path& parent, std::string_view stem);
  ScratchFolder(ScratchFolder&& other) noexcept = default;
  ScratchFolder& operator=(ScratchFolder&&) = delete;
  ~ScratchFolder();

  const std::filesystem::path& path() const { return *path_; }

 private:
  explicit ScratchFolder(std::filesystem::path path)
      : path_(std::make_unique<std::filesystem::path>(std::move(path))) {}
  std::unique_ptr<std::filesystem::path> path_;
};

// SHA-256 of a file's content.
Result<std::string> file_digest(const std::filesystem::path& file);

}  // namespace werk::app
