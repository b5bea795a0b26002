#include "bench/support/token_rate.hpp"

#include <fmt/format.h>

#include <stdexcept>

namespace werk::bench {
namespace {

// Messages knows no way to ignore the end of a sequence; at temperature 0 this story goes on for
// longer, and a slice whose tokens are fewer ends the run.
std::string request_for(const StoryPlace& place, const StoryPlan& plan) {
  std::string body = fmt::format(
      R"({{"model":"{}","messages":[{{"role":"user","content":"Tell a story about the sea."}}],)"
      R"("temperature":0,"max_tokens":{},"stream":true)",
      place.model, plan.tokens);
  if (plan.dialect == Dialect::openai) {
    body += R"(,"seed":7,"ignore_eos":true,"stream_options":{"include_usage":true})";
    if (!plan.more.empty()) body += fmt::format(",{}", plan.more);
  }
  return http_request("POST", target_of(plan.dialect), body + "}", place.key);
}

}  // namespace

TokenRate::TokenRate(const StoryPlace& place, const StoryPlan& plan)
    : load_([&] {
        LoadPlan load;
        load.endpoint = place.endpoint;
        load.dialect = plan.dialect;
        load.connections = plan.callers;
        load.requests = {request_for(place, plan)};
        return load;
      }()),
      each_(plan.each),
      tokens_(plan.each * plan.callers * plan.tokens) {}

void TokenRate::measure() {
  const LoadResult result = load_.run_times(each_);
  if (result.failures > 0) throw std::runtime_error("an answer failed: " + result.first_failure);
  if (result.tokens != tokens_) throw std::runtime_error("tokens are missing");
  rate = static_cast<double>(result.tokens) / result.seconds;
}

}  // namespace werk::bench
