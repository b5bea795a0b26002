// What `werk top` knows of a node: the observability page as plain values, and the rates that
// follow from two pages where the node doesn't tell them. What an older node leaves out, or doesn't
// know of an engine that it didn't start, is absent and never zero. Pure; any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "werk/base/result.hpp"

namespace werk::app::top {

using Count = std::optional<std::uint64_t>;
using Figure = std::optional<double>;

struct NodeFacts {
  std::string version;
  Count pid;
  std::string started_at;
  Figure uptime_s;
  Figure loop_lag_s;
  Count connections;
  Count memory_bytes;
  Count open_files;
  bool draining = false;
  std::optional<bool> ready;
  std::string not_ready;  // why, where it isn't
};

struct Pool {
  std::string name;
  Count capacity;
  Count resident;
  Count starting;
  Count pinned;
};

struct Tokens {
  Count prompt;  // all of them, those from the cache too
  Count cached;
  Count output;
};

struct Runtime {
  std::string key;
  std::string model;
  std::string engine;
  std::string state;
  std::string pool;
  std::string ownership;
  std::string progress;
  std::string last_error;
  std::string since;
  std::string last_used;
  Count pid;
  Count slots_total;
  Count slots_busy;
  Count waiting;
  Count calls;
  Count memory_bytes;
  Tokens tokens;
  Figure load_seconds;
  Figure idle_timeout_s;
  Figure age_s;  // in its present state
  Figure output_tokens_per_second;
  bool tells_rate = false;  // the node says it, or that there was nothing to count
  std::optional<bool> resident;
  bool pinned = false;
};

struct ActiveCall {
  std::string id;
  std::string dialect;
  std::string route;
  std::string model;
  std::string runtime;  // its key, once it has one
  std::string phase;
  std::string client;
  Figure age_s;
  Figure phase_s;
  Tokens tokens;
  std::optional<bool> stream;
};

struct EndedCall {
  std::string id;
  std::string dialect;
  std::string route;
  std::string model;
  std::string outcome;
  std::string cause;
  std::string ended_at;
  Count status;
  Figure load_s;
  Figure wait_s;
  Figure first_byte_s;
  Figure total_s;
  Tokens tokens;
};

struct CallCounts {
  Count active;
  Count waiting;
  Count served;
  Count failed;
  Count cancelled;
};

struct State {
  NodeFacts node;
  std::vector<Runtime> runtimes;
  std::vector<Pool> pools;
  std::vector<std::string> pins;
  CallCounts counts;
  std::vector<ActiveCall> calls;
  Count calls_left_off;
  std::vector<EndedCall> recent;
};

// `now` is the clock of the machine that shows it: where the node doesn't tell how long it runs,
// and so its own time, ages are only as good as both clocks agree.
Result<State> read_state(std::string_view page, std::chrono::system_clock::time_point now);

// Fills in what each runtime generates a second where the node didn't say, from an earlier page.
void add_rates(State& state, const State& before, std::chrono::duration<double> apart);
// Whether that is needed at all: a runtime that could generate has no rate.
bool lacks_rates(const State& state);

// What is cached of all prompt tokens, 0 to 1; none where nothing is known or was read.
Figure cached_share(const Tokens& tokens);
// On average since its first token.
Figure tokens_per_second(const ActiveCall& call);
Figure tokens_per_second(const EndedCall& call);

struct Totals {
  Count slots;  // of those runtimes that have a number of them
  std::uint64_t slots_busy = 0;
  Count memory_bytes;  // of engines
  Figure output_tokens_per_second;
  Figure cached_share;
};
Totals totals_of(const State& state);

}  // namespace werk::app::top
