// An .exchange file as data: the sentence that holds, the node it is about, and steps in order. The
// format is described in README.md. Pure; a file that breaks the format is told with the line.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "werk/base/result.hpp"
#include "werk/gateway/openai_request.hpp"

namespace werk::test {

enum class StartRule : std::uint8_t {
  works,
  fails,     // the engine ends while it starts; a later try might succeed
  unusable,  // the engine can never load this model
  rejected,  // already the plan says that it can't
};

struct ModelLine {
  std::string id;
  std::vector<std::string> aliases;
  bool tools = true;
  bool images = false;
  bool counts = true;             // the engine has a route that counts tokens
  bool keeps_reasoning = false;   // the template has a place for earlier reasoning
  bool later_system = true;       // the template takes system messages behind the first
  bool external = false;          // somebody else's server
  bool native_messages = false;   // it speaks Messages itself
  bool usage_asked = true;        // it takes stream_options
  std::string output_limit = {};  // the only name it knows for it
  std::optional<std::chrono::seconds> silence = {};  // its own limit
  bool plain = false;  // the engine takes OpenAI's dialect and nothing more
  StartRule start = StartRule::works;
  std::chrono::seconds start_time{0};  // what the start takes before it works or fails
};

struct NodeLines {
  std::optional<std::string> default_model;
  std::vector<std::string> keys;
  std::vector<std::string> allowed_hosts;
  std::vector<std::string> alias_rules;  // "NAME=MODEL"
  bool prompt_edits = true;
  std::map<std::string, gateway::RequestDefaults> defaults;  // by model
  std::optional<std::uint64_t> body_bytes_max;
  std::optional<std::uint64_t> buffered_bytes_max;
  std::optional<std::chrono::seconds> engine_silence;
  std::chrono::seconds early_headers{0};
  std::chrono::seconds idle_timeout{0};
  std::size_t waiting_max = 1024;
  std::size_t resident_max = 0;
  std::size_t slots = 4;
};

// One `--- TITLE` and the lines below it, up to the next.
struct Section {
  std::string title;
  std::string text;  // without the line feed before the next title
  std::size_t line = 0;

  bool is(std::string_view prefix) const { return title.starts_with(prefix); }
  // What follows the prefix in the title, trimmed.
  std::string_view after(std::string_view prefix) const;
};

struct ExchangeFile {
  std::string sentence;
  NodeLines node;
  std::vector<ModelLine> models;
  std::vector<Section> steps;
};

Result<ExchangeFile> read_exchange(std::string_view text);

// Every .exchange file below the folder, as paths relative to it, sorted.
std::vector<std::string> exchange_files(const std::filesystem::path& folder);

// A file's bytes.
std::string content_of(const std::filesystem::path& file);

// <repeat N TEXT> and <byte HH> become the bytes they stand for.
std::string expanded(std::string_view text);

// A body as a client may send it: in small chunks, with an extension and a trailer.
std::string in_small_chunks(std::string_view body);

// The text's lines, without a last empty one.
std::vector<std::string_view> lines_of(std::string_view text);

}  // namespace werk::test
