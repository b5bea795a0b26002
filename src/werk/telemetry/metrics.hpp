// Metrics: what is counted as it happens, in plain numbers; metrics_page() makes Prometheus
// families of them when somebody asks. No series can grow without bound: labels come from our own
// enumerations, routes and engines, models only from what is installed (keep_models()), all else is
// "other". Owned by the Recorder, loop thread only.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "werk/base/error.hpp"
#include "werk/telemetry/histogram.hpp"
#include "werk/telemetry/runtime_sink.hpp"

namespace werk::telemetry {

enum class Dialect : std::uint8_t { openai, anthropic };
enum class Outcome : std::uint8_t { served, failed, cancelled };
// What a call is at. place: it waits for a place in a pool. loading: for the model's start. slot:
// for its turn. prompt: the engine reads its prompt.
enum class CallPhase : std::uint8_t { reading, place, loading, slot, prompt, generating };

std::string_view name_of(Dialect dialect);
std::string_view name_of(Outcome outcome);
std::string_view name_of(CallPhase phase);

// Where time between pieces of an answer is counted; each call has one of its own until it ends.
Histogram inter_token_histogram();

struct TokenCounts {
  std::optional<std::uint64_t> prompt;
  std::optional<std::uint64_t> cached;
  std::optional<std::uint64_t> output;
};

// A call that has ended, as it is counted.
struct EndedCall {
  Dialect dialect = Dialect::openai;
  std::string_view route;  // a literal
  std::string_view model;  // the installed model's id; empty: none was found
  Outcome outcome = Outcome::served;
  int status = 200;
  std::optional<ErrorCode> cause;
  CallPhase phase = CallPhase::reading;
  std::chrono::duration<double> total{};
  std::optional<std::chrono::duration<double>> first_byte;
  TokenCounts tokens;
  const Histogram& inter_token;
  bool admitted = false;  // it got the right to run
};

// The label of what belongs to no installed model.
inline constexpr std::string_view kOtherModel = "other";

class Metrics {
 public:
  struct CallSeries {
    Dialect dialect = Dialect::openai;
    Outcome outcome = Outcome::served;
    int status_class = 2;
    std::optional<ErrorCode> cause;
    std::string_view route;
    auto operator<=>(const CallSeries&) const = default;
  };
  struct OfModel {
    OfModel();
    std::map<CallSeries, std::uint64_t> calls;
    Histogram first_byte;
    Histogram inter_token;
    Histogram total;
    std::uint64_t prompt_tokens = 0;
    std::uint64_t prompt_tokens_cached = 0;
    std::uint64_t output_tokens = 0;
  };
  struct OfEngine {
    OfEngine();
    std::uint64_t starts = 0;
    Histogram start_seconds;
    std::map<ErrorCode, std::uint64_t> start_failures;
    std::map<StopReason, std::uint64_t> evictions;
    std::uint64_t deaths = 0;
  };

  void count(const EndedCall& call);
  // Series of models that aren't installed any more go.
  void keep_models(const std::set<std::string_view>& installed);
  OfEngine& of_engine(std::string_view engine);

  const std::map<std::string, OfModel, std::less<>>& models() const { return models_; }
  const std::map<std::string, OfEngine, std::less<>>& engines() const { return engines_; }
  const std::map<CallPhase, std::uint64_t>& cancelled() const { return cancelled_; }

 private:
  std::map<std::string, OfModel, std::less<>> models_;
  std::map<std::string, OfEngine, std::less<>> engines_;
  std::map<CallPhase, std::uint64_t> cancelled_;
};

}  // namespace werk::telemetry
