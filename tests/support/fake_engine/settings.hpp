// What the fake llama-server is told to do: Settings for the process, Reply for one generation.
// Both are read from JSON, where every member is optional; reading again merges into what stands.
// Plain values; the fake guards the shared one with its mutex. README.md beside this file lists the
// members.
#pragma once

#include <boost/json.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace werk::fake {

namespace json = boost::json;

// Ways to end badly, after a number of events.
struct Death {
  std::uint64_t after = 0;
  std::string how;  // exit, kill, reset, close, end, garbage, garbage_http, endless, error
};

struct Reply {
  bool hold = false;                       // nothing is sent until released
  bool gated = false;                      // every token waits for a step
  std::optional<std::uint64_t> hold_after;  // wait for a release after this many events
  std::optional<std::uint64_t> tokens;
  std::vector<std::string> content;        // instead of "tok0 ", "tok1 ", ...
  std::vector<std::string> reasoning;      // before the content
  std::string reasoning_field = "reasoning_content";
  json::array tool_calls;                  // {"id","name","arguments":["piece",...]}
  std::vector<std::string> events;         // instead of all that: data of each event
  std::string raw;                         // instead of any HTTP: bytes, then close
  std::string finish_reason;
  bool role_chunk = true;
  std::uint64_t progress_events = 2;
  std::uint64_t prompt_tokens = 32;
  std::uint64_t cached_tokens = 0;
  std::optional<Death> death;
  unsigned status = 200;                   // else an error answer with `error` as its object
  json::object error;
  json::object headers;
  std::string line_end = "\n";
  bool comments = false;                   // a comment line before each event
  std::size_t segment_bytes = 0;           // bytes per write; 0: an event per write
  std::uint64_t events_per_write = 1;
  std::uint64_t pace_us = 0;               // for benchmarks only
  std::string framing = "chunked";         // or "close"
};

struct Settings {
  std::string start = "ready";  // ready, hold (until told), exit, no_listen
  int exit_code = 1;
  std::string stderr_text;
  std::string version = "0.5.0";
  std::uint64_t build = 11000;
  std::string commit = "abc1234";
  json::array devices;                     // lines of --list-devices
  std::vector<std::string> help_without;   // flags to leave out of --help and to refuse
  bool any_flag = false;                   // unknown flags are accepted
  bool check_model = false;                // exit 1 where -m is no file
  bool ignore_term = false;
  bool busy_after_close = false;           // a slot whose client left is busy until released
  std::string alias;                       // instead of --alias
  std::uint64_t total_slots = 0;           // instead of -np
  std::uint64_t n_ctx = 0;                 // instead of what -c and -np give
  std::uint64_t n_ctx_train = 8192;
  json::object props;                      // merged over /props
  json::object statuses;                   // path: {"status","body"} instead of the real answer
  std::uint64_t hold_until = 0;            // generations wait until so many have arrived
  std::uint64_t requests_per_connection = 100;
  bool core = false;                       // of vLLM: a helper stands for the engine core
  std::string control;                     // where FAKE_ENGINE_CONTROL names nothing
  Reply reply;
  std::vector<json::object> replies;       // merged over `reply`: for the 1st, 2nd, ... generation
  json::object models;                     // part of model path or alias: settings merged for it
};

void merge(Reply& reply, const json::object& members);
void merge(Settings& settings, const json::object& members);

// From the file that FAKE_ENGINE_SCRIPT names, else from `<program>.json` if it exists, else
// defaults. Merges the entry of `models` that suits. A file that is no JSON object ends the process
// with 70.
Settings load_settings(const std::string& program, const std::string& model,
                       const std::string& alias);

std::string text_member(const json::object& members, std::string_view name);
std::uint64_t number_member(const json::object& members, std::string_view name,
                            std::uint64_t otherwise);

}  // namespace werk::fake
