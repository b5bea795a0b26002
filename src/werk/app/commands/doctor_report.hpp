// What the doctor found, as plain values, and how it reads: for a person in at most 80 columns, for
// a program as JSON. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace werk::app {

enum class Finding : std::uint8_t { good, note, lack };

struct EngineFinding {
  std::string origin;  // "installed by Werk", "in PATH", "named by WERK_LLAMA_SERVER"
  std::string path;
  std::string version = {};
  std::vector<std::string> devices = {};  // "CUDA0 (NVIDIA ...)"; none: the processor alone
  bool threads_spin = false;              // while they wait for one another
  bool openmp_helps = false;              // LLVM's, if it were here, would make them yield
  std::vector<std::string> lacks = {};    // flags that it doesn't know and Werk would use
  std::string problem = {};               // why it can't be used
};

// An engine that runs in a worker, and whether its interpreter is there.
struct WorkerFinding {
  std::string engine;
  std::string path;
  std::string version;
  std::string problem;  // empty: it can serve
  std::string kind = "in a worker";
};

// A server elsewhere, and whether it answers.
struct RemoteFinding {
  std::string name;
  std::string url;
  std::size_t models = 0;  // listed
  std::string problem;     // empty: it answers
};

struct ModelFinding {
  std::string id;
  std::string engine;   // empty: none
  std::string problem;  // why none; or what will be missed
};

struct MachineFinding {
  std::string topic;  // "home", "node", "port", "sockets", "descriptors", "memory", "disk"
  Finding finding = Finding::good;
  std::string text;
};

struct DoctorReport {
  std::vector<EngineFinding> engines;
  std::vector<WorkerFinding> workers;
  std::vector<RemoteFinding> remotes;
  std::vector<ModelFinding> models;
  std::vector<MachineFinding> machine;
  std::vector<std::string> helpful;  // commands, the most helpful first
  bool can_serve = false;
};

enum class Colours : std::uint8_t { no, yes };

std::string doctor_text(const DoctorReport& report, Colours colours);
// {"schema": 1, "can_serve", "engines", "workers", "remotes", "models", "machine", "helpful"}
std::string doctor_json(const DoctorReport& report);

}  // namespace werk::app
