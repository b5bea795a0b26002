// The programs that are measured, as children of a benchmark: any command, a node, nginx. Each is
// started and ended by its process id, and its files lie in the benchmark's own folder. Waiting is
// a look every millisecond with a limit; failures throw. Single thread.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bench/support/wire.hpp"

namespace werk::bench {

// A folder below the temporary one, gone with the object.
class Folder {
 public:
  Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder();
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// True once `met` holds; false after the limit.
bool wait_until(const std::function<bool()>& met, std::chrono::milliseconds limit);
void pause_a_millisecond();

class Child {
 public:
  // `environment` comes on top of ours without WERK_*, LLAMA_* and BENCH_MOCK_*. Its output goes to
  // the file `log`. It is told to end when the benchmark dies.
  Child(std::vector<std::string> words, const std::vector<std::string>& environment,
        std::filesystem::path log);
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child();  // kills what still runs

  pid_t pid() const { return pid_; }
  // Just before it was started.
  std::chrono::steady_clock::time_point begun() const { return begun_; }
  bool running();
  void stop(int signal);  // and waits for the end
  int wait();             // the exit status, or 128 and the signal
  std::string log_text() const;

 private:
  pid_t pid_ = -1;
  std::chrono::steady_clock::time_point begun_;
  bool running_ = true;
  int status_ = 0;
  std::filesystem::path log_;
};

// Processor time of a process, all its threads.
double cpu_seconds(pid_t pid);
// What of its memory is in RAM; "RssAnon": of that, what belongs to no file.
double resident_kib(pid_t pid, std::string_view kind = "VmRSS");
std::size_t descriptors_of(pid_t pid);
// The children of a process whose command line holds the word.
std::vector<pid_t> children_of(pid_t parent, const std::string& word);

// What a benchmark is run with; `bench/run` sets the variables.
struct Setting {
  std::string werk;         // BENCH_WERK
  std::string mock;         // BENCH_MOCK
  std::string home;         // WERK_HOME: the real model
  std::string real_engine;  // BENCH_LLAMA_SERVER; empty: the home's own
  std::string model;        // BENCH_MODEL (smollm2)
  bool quick = false;       // BENCH_QUICK=1: shorter slices, fewer rounds

  // Seven pairs are wanted even when two of them are dropped.
  std::size_t rounds() const { return quick ? 3 : 9; }
};
Setting read_setting();

// The engine that a node started, so that it can be asked past the node.
struct EngineHandle {
  pid_t pid = -1;
  std::vector<std::string> words;  // its command line
  std::string key;
  std::string socket;
  std::string alias;
  Endpoint endpoint() const { return {socket, 0}; }
};

class Node {
 public:
  Node(const Setting& setting, const std::filesystem::path& home,
       const std::vector<std::string>& arguments, const std::vector<std::string>& environment,
       const std::filesystem::path& log);

  pid_t pid() const { return child_.pid(); }
  Endpoint endpoint() const { return {"", port_}; }
  // The engine whose command line holds `part`; it must be up.
  EngineHandle engine(const std::string& part = "--host") const;
  void stop();  // SIGTERM, and its end
  std::string log_text() const { return child_.log_text(); }

 private:
  Child child_;
  std::uint16_t port_ = 0;
};

// Has a node load a model, by a first answer.
void load_model(const Endpoint& node, std::string_view model);

// A port that was free a moment ago, for a server that is told one.
std::uint16_t free_port();

// What a node of the home starts for its model.
struct EngineFiles {
  std::string program;
  std::filesystem::path model;
};
EngineFiles engine_files(const Setting& setting, const Folder& folder);

// `werk import` of a file or a folder, with further words.
void import_model(const Setting& setting, const Folder& folder, const std::string& home,
                  const std::filesystem::path& path, const std::string& model,
                  const std::vector<std::string>& more = {});
// A home with models of these names that are all this file, told apart by bytes behind its end:
// other files to the node and the same to the engine.
void make_copies(const Setting& setting, const Folder& folder, const std::string& home,
                 const std::filesystem::path& file, const std::vector<std::string>& models);
// A home with small models of these names. The mock never looks into them.
void make_home(const Setting& setting, const Folder& folder, const std::string& home,
               const std::vector<std::string>& models);

class Nginx {
 public:
  enum class AccessLog : std::uint8_t { on, off };
  // One worker in front of `upstream`, buffering off, connections kept.
  Nginx(const Folder& folder, const std::string& name, const std::string& upstream_socket,
        AccessLog access_log);
  Nginx(const Nginx&) = delete;
  Nginx& operator=(const Nginx&) = delete;
  ~Nginx();  // by SIGTERM: killed, it would leave its worker behind
  Endpoint endpoint() const { return {"", port_}; }
  pid_t worker() const;
  std::chrono::steady_clock::time_point begun() const { return child_->begun(); }

 private:
  std::uint16_t port_ = 0;
  std::unique_ptr<Child> child_;
};

}  // namespace werk::bench
