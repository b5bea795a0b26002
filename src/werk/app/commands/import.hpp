// `werk import`: takes models into the store, one, those of a folder (`--all`), or those that other
// tools keep on this machine (`--scan`, in import_scan.hpp). Ctrl-C ends it and leaves the models
// that were whole by then. Blocking; main thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "werk/app/command_line.hpp"
#include "werk/app/progress.hpp"
#include "werk/app/terminal.hpp"
#include "werk/model/store.hpp"
#include "werk/process/interrupt.hpp"

namespace werk::app {

// What one run of the command shares: the store, the line of progress, Ctrl-C and what became of
// each model. Results are told on standard output, faults on standard error.
class ImportRun {
 public:
  explicit ImportRun(const std::filesystem::path& home) : store_(home) {}

  const model::Store& store() const { return store_; }
  bool is_interrupted();

  // Imports and tells.
  void take(const model::ImportRequest& request);
  void tell_already(std::string_view id, std::string_view what);
  void tell_skipped(std::string_view what, std::string_view reason);
  void tell_failure(std::string_view message);

  // 0, 1 after a failure, kSignalStatus. `summary`: also a line of figures.
  enum class Summary : std::uint8_t { no, yes };
  int finish(Summary summary);

 private:
  model::Store store_;
  ProgressLine progress_;
  process::Interrupt signals_;
  bool interrupted_ = false;
  std::size_t imported_ = 0;
  std::size_t already_ = 0;
  std::size_t skipped_ = 0;
  std::size_t failed_ = 0;
};

// The id if it is free, else `PREFIX/ID`, else the id with a number.
std::string free_id(std::string_view id, std::string_view prefix,
                    const std::vector<model::InstalledModel>& installed);

int import_command(const CommandLine& line, const std::filesystem::path& home);

}  // namespace werk::app
