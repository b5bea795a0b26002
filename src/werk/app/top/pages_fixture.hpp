// Pages of nodes for the tests of `werk top`: one with everything that a node tells, one of a node
// that knows less, one with as many calls as wanted. Values, made at each call.
#pragma once

#include <fmt/format.h>

#include <chrono>
#include <clocale>
#include <string>

#include "werk/app/top/cells.hpp"
#include "werk/app/top/state.hpp"
#include "werk/base/timestamp.hpp"

namespace werk::app::top {

// When every page was taken.
inline std::chrono::system_clock::time_point page_time() {
  return *time_of("2026-11-30T12:00:00Z");
}

inline std::string runtime_json(const std::string& model, const std::string& more) {
  return fmt::format(R"({{"key":"{0}-key","model":"{0}","engine":"llama-cpu","state":"ready",
    "pid":4242,"since":"2026-11-30T11:59:18Z","slots":{{"total":4,"busy":1}},"waiting":0,
    "last_error":null,"progress":null,"pinned":false,"last_used":"2026-11-30T11:59:59Z",
    "idle_timeout_s":600.0,"calls":12,
    "tokens":{{"prompt_cached":630,"prompt_new":370,"output":5000}},"pool":"llama-server",
    "ownership":"owned","resident":true,"memory_bytes":5400000000,"load_seconds":3.25,
    "output_tokens_per_second":81.25{1}}})",
                     model, more.empty() ? "" : "," + more);
}

inline std::string call_json(const std::string& id, const std::string& model,
                             const std::string& phase, double age) {
  return fmt::format(R"({{"id":"{}","dialect":"openai","route":"/v1/chat/completions",
    "model":"{}","runtime":"coder-key","phase":"{}","age_s":{},"phase_s":2.0,
    "client":"127.0.0.1","stream":true,"prompt_tokens":1200,"cached_tokens":900,
    "output_tokens":80}})",
                     id, model, phase, age);
}

inline constexpr std::string_view kNodeJson =
    R"("node":{"version":"0.1.0","pid":100,"started_at":"2026-11-30T10:40:00Z","draining":false,
    "uptime_s":4800.0,"loop_lag_s":0.0004,"connections":12,"memory_bytes":24100000,
    "open_files":88,"ready":true,"not_ready":null})";

// Three models, of which one loads and one is served elsewhere, three calls and one that ended.
inline std::string full_page() {
  const std::string loading =
      R"({"key":"big-key","model":"big","engine":"vllm","state":"starting","pid":4300,
      "since":"2026-11-30T11:59:55Z","slots":{"total":null,"busy":0},"waiting":1,
      "last_error":null,"progress":"reads weights, 1.2 GB in memory","pinned":true,
      "last_used":null,"idle_timeout_s":null,"calls":0,
      "tokens":{"prompt_cached":0,"prompt_new":0,"output":0},"pool":"vllm","ownership":"owned",
      "resident":true,"memory_bytes":1200000000,"load_seconds":null,
      "output_tokens_per_second":null})";
  const std::string elsewhere =
      R"({"key":"far-key","model":"far","engine":"remote","state":"ready","pid":null,
      "since":"2026-11-30T11:00:00Z","slots":{"total":null,"busy":1},"waiting":0,
      "last_error":"connection refused","progress":null,"pinned":false,"last_used":null,
      "idle_timeout_s":null,"calls":3,
      "tokens":{"prompt_cached":null,"prompt_new":900,"output":40},"pool":"remote",
      "ownership":"external","resident":false,"memory_bytes":null,"load_seconds":null,
      "output_tokens_per_second":4.5})";
  return fmt::format(
      R"({{"schema":1,{},"runtimes":[{},{},{}],
      "pools":[{{"name":"llama-server","capacity":3,"resident":1,"starting":0,"pinned":0}},
               {{"name":"vllm","capacity":null,"resident":1,"starting":1,"pinned":1}}],
      "pins":["big","other"],
      "calls":{{"active":3,"waiting":1,"served":120,"failed":1,"cancelled":4}},
      "active_calls":[{},{},{}],"active_calls_left_off":0,
      "recent_calls":[{{"id":"call-9","dialect":"anthropic","route":"/v1/messages","model":"coder",
        "outcome":"failed","status":503,"cause":"capacity","ended_at":"2026-11-30T11:59:58Z",
        "load_s":0.0,"wait_s":60.0,"first_byte_s":null,"total_s":60.0,"prompt_tokens":null,
        "cached_tokens":null,"output_tokens":null}}]}})",
      kNodeJson, runtime_json("coder", ""), loading, elsewhere,
      call_json("call-1", "coder", "generating", 3.4), call_json("call-2", "big", "loading", 62.0),
      call_json("call-3", "far", "prompt", 0.3));
}

// What a node of an earlier version says.
inline std::string old_page() {
  return R"({"schema":1,"node":{"version":"0.0.9","pid":7,"started_at":"2026-11-30T11:58:30Z",
    "draining":false},"runtimes":[{"key":"k","model":"small","engine":"llama-cpu","state":"ready",
    "pid":8,"since":"2026-11-30T11:59:00Z","slots":{"total":2,"busy":0},"waiting":0,
    "last_error":null,"progress":null,"pinned":false,"last_used":"2026-11-30T11:59:30Z",
    "idle_timeout_s":null,"calls":1,"tokens":{"prompt_cached":0,"prompt_new":0,"output":100}}],
    "pools":[],"pins":[],"calls":{"active":0,"waiting":0,"served":1,"failed":0,"cancelled":0}})";
}

// One model and so many calls on it, the oldest last.
inline std::string crowded_page(int calls) {
  std::string list;
  for (int i = 0; i < calls; ++i) {
    list += fmt::format("{}{}", i == 0 ? "" : ",",
                        call_json(fmt::format("call-{:03}", i), "coder", "generating", 1.0 + i));
  }
  return fmt::format(R"({{"schema":1,{},"runtimes":[{}],"pools":[],"pins":[],
    "calls":{{"active":{},"waiting":0,"served":0,"failed":0,"cancelled":0}},
    "active_calls":[{}],"active_calls_left_off":7,"recent_calls":[]}})",
                     kNodeJson, runtime_json("coder", ""), calls, list);
}

inline State state_of(const std::string& page) {
  auto state = read_state(page, page_time());
  return state ? *state : State();
}

// The widths of characters that aren't ASCII depend on it.
inline void use_wide_locale() { std::setlocale(LC_CTYPE, "C.UTF-8"); }

inline std::string text_of(const std::vector<Line>& lines) {
  std::string text;
  for (const Line& line : lines) text += plain_text(line) + "\n";
  return text;
}

}  // namespace werk::app::top
