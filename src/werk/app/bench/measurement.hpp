// Measurement: a whole benchmark from the first look at the servers to the last run, on a loop of
// its own: warm-up, levels, repeats, and with two servers pairs that alternate (A B, B A, ...)
// after one that only warms up. Ctrl-C ends it at once; what was measured stays in the session.
// Owned by the command; main thread, blocking.
#pragma once

#include <memory>
#include <vector>

#include "werk/app/bench/record.hpp"
#include "werk/app/bench/server.hpp"
#include "werk/base/result.hpp"

namespace werk::app::bench {

class Measurement {
 public:
  // The session's plan must be complete; the rest is filled in by run().
  // `against` is empty, one server, or one for each model.
  Measurement(Session& session, Server first, std::vector<Server> against);
  Measurement(const Measurement&) = delete;
  Measurement& operator=(const Measurement&) = delete;
  ~Measurement();

  // Fails only where nothing can be measured: a warm-up request that failed, in the server's words.
  Status run();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Notes that follow from what was measured: what nobody told, and what a reader must know.
void add_notes(Session& session);

}  // namespace werk::app::bench
