// What a benchmark has measured, as plain values: each request, each run of them, and what stood
// around it (servers, machine, conditions). Filled by the command and its load, read by the report,
// the table and the comparison. What a server doesn't tell is none, never a guess.
#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "werk/app/bench/plan.hpp"
#include "werk/app/bench/statistics.hpp"

namespace werk::app::bench {

struct RequestRecord {
  std::string model;
  double begun_seconds = 0;  // since the run began; by rate, when the request was due
  double elapsed_seconds = 0;
  std::optional<double> ttft_seconds;   // to the first text, reasoning or tool call
  std::optional<double> last_seconds;   // to the last of them
  std::uint32_t pieces = 0;             // events that held something of the answer
  std::optional<double> queue_seconds;  // in line for a slot, as a Werk node tells it
  std::optional<double> load_seconds;   // before that, until its model was there
  std::optional<boost::json::object> usage;
  std::optional<std::uint64_t> completion_tokens;
  std::string finish_reason;
  int status = 0;      // of HTTP; 0: no answer
  std::string error;   // empty: it succeeded
  bool ended = false;  // false: never begun, or still under way when the run was interrupted
};

enum class Side : std::uint8_t { first, against };

// One run: a level's requests on one server, once.
struct RunRecord {
  Side side = Side::first;
  Level level;
  std::uint32_t repeat = 0;  // counted from 0; with two servers the number of the pair
  bool discarded = false;    // a pair that only warms up
  double elapsed_seconds = 0;
  std::vector<RequestRecord> requests;
  std::vector<double> inter_token_seconds;  // of all its requests
  std::optional<boost::json::object> observability_before;
  std::optional<boost::json::object> observability_after;
  std::optional<std::uint32_t> engine_processes;  // the most that were seen at once
};

struct Machine {
  std::string cpu;
  unsigned cores = 0;
  std::uint64_t memory_bytes = 0;
  std::vector<double> load_before;
  std::vector<double> load_after;
};

struct ServerRecord {
  std::string url;
  std::string version;  // empty: it doesn't say
};

struct Session {
  Plan plan;
  bool warmup = false;
  ServerRecord first;
  std::optional<ServerRecord> against;
  std::string werk_version;
  std::string started_at;
  // "warm", "cold" or "partly warm" as the first run began; empty: the server doesn't tell.
  std::string start_state;
  Machine machine;
  std::vector<std::string> notes;
  bool interrupted = false;
  std::vector<RunRecord> runs;
};

// What is worked out of one run.
struct RunFigures {
  std::uint32_t succeeded = 0;
  std::uint32_t failed = 0;
  std::optional<std::uint64_t> output_tokens;       // none if a success wasn't counted
  std::optional<double> tokens_per_second;          // all of them over the run's time
  std::optional<double> request_tokens_per_second;  // median over requests
  std::optional<Percentiles> ttft;
  std::optional<Percentiles> total;
  std::optional<Percentiles> inter_token;
};
RunFigures figures_of(const RunRecord& run);

// The pairs of one level: the first server's figures over the other's.
struct LevelRatios {
  Level level;
  Summary tokens_per_second;
  Summary ttft_p50;
  Summary total_p50;
};
std::vector<LevelRatios> ratios_of(const Session& session);

// Of how many successes a server that tells such things didn't tell how long they waited.
std::size_t untold_waits(const Session& session);

// How many requests failed, of all runs.
std::uint32_t failures_of(const Session& session);

// Runtimes of an observability page that are processes; none if the page doesn't list any.
std::optional<std::uint32_t> processes_in(const boost::json::object& page);
// Whether the models were loaded before the first run: "warm", "cold" or "partly warm". Empty where
// the page after it doesn't list one of them: then it has another name there (an alias).
std::string start_state_of(const boost::json::object& before, const boost::json::object& after,
                           const std::vector<std::string>& models);

}  // namespace werk::app::bench
