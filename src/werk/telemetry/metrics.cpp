#include "werk/telemetry/metrics.hpp"

#include <array>

namespace werk::telemetry {

namespace {

constexpr std::array kAnswerBounds = {0.01, 0.025, 0.05, 0.1,  0.25, 0.5,   1.0,   2.5,
                                      5.0,  10.0,  20.0, 30.0, 60.0, 120.0, 300.0, 600.0};
constexpr std::array kPieceBounds = {0.001, 0.0025, 0.005, 0.01, 0.02, 0.03, 0.05, 0.075,
                                     0.1,   0.15,   0.25,  0.5,  1.0,  2.5,  5.0,  10.0};
constexpr std::array kStartBounds = {0.05, 0.1,  0.25, 0.5,  1.0,   2.5,   5.0,
                                     10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0};

template <class Value>
Value& entry_of(std::map<std::string, Value, std::less<>>& all, std::string_view name) {
  const auto known = all.find(name);
  return known != all.end() ? known->second : all[std::string(name)];
}

}  // namespace

std::string_view name_of(Dialect dialect) {
  return dialect == Dialect::openai ? "openai" : "anthropic";
}

std::string_view name_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::served: return "served";
    case Outcome::failed: return "failed";
    case Outcome::cancelled: return "cancelled";
  }
  return "failed";
}

std::string_view name_of(CallPhase phase) {
  switch (phase) {
    case CallPhase::reading: return "reading";
    case CallPhase::place: return "place";
    case CallPhase::loading: return "loading";
    case CallPhase::slot: return "slot";
    case CallPhase::prompt: return "prompt";
    case CallPhase::generating: return "generating";
  }
  return "reading";
}

Histogram inter_token_histogram() { return Histogram(kPieceBounds); }

Metrics::OfModel::OfModel()
    : first_byte(kAnswerBounds), inter_token(kPieceBounds), total(kAnswerBounds) {}

Metrics::OfEngine::OfEngine() : start_seconds(kStartBounds) {}

void Metrics::count(const EndedCall& call) {
  OfModel& model = entry_of(models_, call.model.empty() ? kOtherModel : call.model);
  ++model.calls[CallSeries{call.dialect, call.outcome, call.status / 100, call.cause, call.route}];
  model.total.observe(call.total.count());
  if (call.first_byte) model.first_byte.observe(call.first_byte->count());
  model.inter_token.add(call.inter_token);
  model.prompt_tokens += call.tokens.prompt.value_or(0);
  model.prompt_tokens_cached += call.tokens.cached.value_or(0);
  model.output_tokens += call.tokens.output.value_or(0);
  if (call.outcome == Outcome::cancelled) ++cancelled_[call.phase];
}

void Metrics::keep_models(const std::set<std::string_view>& installed) {
  std::erase_if(models_, [&](const auto& one) {
    return one.first != kOtherModel && !installed.contains(one.first);
  });
}

Metrics::OfEngine& Metrics::of_engine(std::string_view engine) {
  return entry_of(engines_, engine);
}

}  // namespace werk::telemetry
