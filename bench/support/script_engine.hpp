// The other side of the cold figures: what a script does that starts an engine by hand. It spawns
// the very command line that a node used, looks at /health every millisecond, and asks. Also how
// both sides are asked: one request on a connection of its own, with the time of the first text.
// Owned by a benchmark; the engine is killed with the object. Single thread; failures throw.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "bench/support/load.hpp"
#include "bench/support/programs.hpp"

namespace werk::bench {

class ScriptEngine {
 public:
  // `socket` replaces the node's own. `environment` is what the node gave its engine.
  ScriptEngine(const EngineHandle& like, const std::filesystem::path& socket,
               std::vector<std::string> environment, const std::filesystem::path& log);
  bool ready() const;  // one look
  void wait_ready();   // a look every millisecond
  void stop();         // SIGTERM, and its end
  Endpoint endpoint() const { return {socket_, 0}; }

 private:
  std::string socket_;
  std::string health_request_;
  std::unique_ptr<Child> child_;
};

// Sends a streaming request, reads the whole answer, and tells when its first text had come.
SteadyTime first_text(const Endpoint& endpoint, const std::string& request);

}  // namespace werk::bench
