// Finds the llama-server that a mode uses and learns what it is by running it briefly. Named by a
// variable wins, and must work; else of the managed one and the one in PATH the one whose devices
// suit. What was learnt is kept in memory and, apart from devices and libraries, in a small file
// below the home's cache folder, for as long as path, size and time of change stay the same. Owned
// by the app, which outlives every call; loop thread only.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "werk/async/clock.hpp"
#include "werk/async/offload.hpp"
#include "werk/engine/llama_server/options.hpp"
#include "werk/engine/llama_server/probe.hpp"
#include "werk/process/child.hpp"

namespace werk::engine::llama_server {

struct FinderSettings {
  NamedExecutables named;
  std::string search_path;                           // the value of PATH
  std::filesystem::path home;                        // WERK_HOME: managed engines and the cache
  std::vector<std::string> environment;              // complete, for the short runs
  async::Duration limit = std::chrono::seconds(10);  // for each short run
};

// Tells one file at a path from another at the same path.
struct FileIdentity {
  std::uint64_t size_bytes = 0;
  std::int64_t changed_ns = 0;
  std::uint64_t inode = 0;

  bool operator==(const FileIdentity&) const = default;
};

std::optional<FileIdentity> identity_of(const std::string& path);

class Finder {
 public:
  Finder(process::Children& children, async::Clock& clock, async::Offload& offload,
         FinderSettings settings);

  struct Choice {
    Mode mode = Mode::cpu;
    Executable executable;
  };

  // The executable for this mode. Fails with `not_found` when a named one is missing or doesn't run
  // (naming the variable) or when none suits (naming the ways to supply one); with `cancelled`.
  async::awaitable<Result<Executable>> find(Mode mode, std::stop_token stop);
  // The best mode that can be had on this machine, for `--backend auto`: an accelerator before
  // none.
  async::awaitable<Result<Choice>> choose(std::stop_token stop);
  // Runs the executable at this path unless it is known already. Fails with `not_found` and the
  // reason, without a hint.
  async::awaitable<Result<Executable>> examine(std::string path, std::stop_token stop);

 private:
  struct Known {
    FileIdentity identity;
    Executable executable;
    bool has_devices = false;  // devices and libraries are looked at anew in every life of the node
  };
  struct Found {
    std::string path;
    FileIdentity identity;
  };
  struct Survey {
    std::vector<Executable> usable;
    std::vector<std::string> failures;
  };

  async::awaitable<Result<Executable>> examine_named(std::string variable, std::string value,
                                                     std::stop_token stop);
  async::awaitable<Result<Survey>> survey(std::stop_token stop);
  async::awaitable<Result<std::string>> run(std::string path, std::string argument,
                                            std::vector<std::string> environment,
                                            std::stop_token stop);
  async::awaitable<Result<LoaderTrace>> list_devices(std::string path, std::string preload,
                                                     std::stop_token stop);
  async::awaitable<std::string> openmp_to_preload(std::string path, std::stop_token stop);
  async::awaitable<Result<Executable>> learn(std::string path, std::stop_token stop);
  async::awaitable<void> load_cache();
  async::awaitable<void> save_cache();
  std::filesystem::path cache_file() const;

  process::Children& children_;
  async::Clock& clock_;
  async::Offload& offload_;
  FinderSettings settings_;
  std::string fingerprint_;
  bool cache_loaded_ = false;
  std::map<std::string, Known> known_;  // by path
  std::map<Mode, Found> found_;
};

}  // namespace werk::engine::llama_server
