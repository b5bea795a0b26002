// What `werk bench` asks of a server: how many requests, of which models, how many at once or how
// often, with which prompts; and each request's body. Everything follows from the command line, the
// prompts' file and the seed, so the same plan makes the same requests on every machine. Pure;
// plain values, owned by the command.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "werk/base/result.hpp"

namespace werk::app::bench {

enum class Dialect : std::uint8_t { openai, anthropic };
std::string_view name_of(Dialect dialect);

enum class PromptKind : std::uint8_t { fixed, made, file };
std::string_view name_of(PromptKind kind);

struct Prompts {
  PromptKind kind = PromptKind::fixed;
  std::uint32_t tokens = 0;               // made: about so many, behind what they share
  std::uint32_t shared_tokens = 0;        // made: the same words before each
  std::vector<std::string> members = {};  // file: each prompt as members of a request's body
  std::string digest = {};                // file: SHA-256
};
// A prompt a line: text, or a JSON object with `messages` (or `prompt`) whose further members are
// sent along, apart from those that the plan decides. Blank lines don't count. invalid_request
// names the line that is at fault.
Result<Prompts> read_prompts(std::string_view text);

// How requests come: so many callers, each of which asks again when it has its answer, or by
// chance, so many a second, whoever still waits.
struct Level {
  std::uint32_t callers = 0;  // 0: by rate
  double rate = 0;
};

enum class EndOfSequence : std::uint8_t { ends, ignored };

struct Plan {
  std::vector<std::string> models;
  Dialect dialect = Dialect::openai;
  std::uint32_t requests = 16;  // of each run
  std::uint32_t max_tokens = 128;
  std::uint64_t seed = 1;
  EndOfSequence end_of_sequence = EndOfSequence::ends;
  Prompts prompts;
  std::vector<Level> levels;
  std::uint32_t repeat = 1;  // how often each level is measured
};

// The path that is asked, below that of the API.
std::string_view path_of(Dialect dialect);
// Models take turns.
const std::string& model_of(const Plan& plan, std::uint64_t request);
// The body of a request; `round` tells runs apart, so that made prompts never come again.
std::string body_of(const Plan& plan, std::uint64_t round, std::uint64_t request);
// When each request of a run comes, in seconds from its beginning: a Poisson process.
std::vector<double> arrivals(const Plan& plan, std::uint64_t round, double rate);
// About so many tokens of plain English words, one each in most vocabularies.
std::string made_text(std::uint64_t seed, std::uint32_t tokens);

}  // namespace werk::app::bench
