#include "werk/app/bench/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "werk/base/digest.hpp"
#include "werk/base/json_cursor.hpp"
#include "werk/base/json_scan.hpp"
#include "werk/base/text.hpp"

namespace werk::app::bench {
namespace {

constexpr std::string_view kFixedPrompt =
    "Tell a story about a lighthouse, the woman who keeps it, and the night on which its lamp went "
    "out.";
constexpr std::array<std::string_view, 64> kWords = {
    "time",     "year",    "people",   "way",    "day",        "man",    "thing",   "woman",
    "life",     "child",   "world",    "school", "state",      "family", "student", "group",
    "country",  "problem", "hand",     "part",   "place",      "case",   "week",    "company",
    "system",   "program", "question", "work",   "government", "number", "night",   "point",
    "home",     "water",   "room",     "mother", "area",       "money",  "story",   "fact",
    "month",    "lot",     "right",    "study",  "book",       "eye",    "job",     "word",
    "business", "issue",   "side",     "kind",   "head",       "house",  "service", "friend",
    "father",   "power",   "hour",     "game",   "line",       "end",    "member",  "law"};
// What the plan says of every request, whatever a prompt's object holds.
constexpr std::array<std::string_view, 6> kOfThePlan = {
    "model", "stream", "stream_options", "max_tokens", "temperature", "seed"};

// SplitMix64: the same numbers on every machine, which the library's distributions don't promise.
class Chance {
 public:
  explicit Chance(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15u;
    std::uint64_t mixed = state_;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
    return mixed ^ (mixed >> 31);
  }
  // In (0, 1].
  double share() { return (static_cast<double>(next() >> 11) + 1) * 0x1p-53; }

 private:
  std::uint64_t state_;
};

// A seed of its own for each purpose and number.
std::uint64_t derived(std::uint64_t seed, std::uint64_t purpose, std::uint64_t number) {
  Chance chance(seed ^ (purpose << 56));
  return chance.next() ^ Chance(number).next();
}

std::string user_message(std::string_view text) {
  return fmt::format(R"("messages":[{{"role":"user","content":{}}}])", to_json_string(text));
}

tl::unexpected<Error> wrong_line(std::size_t number, std::string_view why) {
  return fail(ErrorCode::invalid_request, fmt::format("line {} of the prompts {}", number, why));
}

// One object of a JSONL file as members of a body.
Result<std::string> members_of(std::string_view object, std::size_t number) {
  JsonScanner scanner{JsonScanLimits{}};
  const Status fed = scanner.feed(object);
  if (!fed || !scanner.finish()) return wrong_line(number, "is no JSON object");
  std::string members;
  bool asks = false;
  JsonObjectCursor cursor(object);
  while (const auto member = cursor.next()) {
    const auto is_it = [&](std::string_view name) { return member->is(name); };
    if (std::ranges::any_of(kOfThePlan, is_it)) continue;
    std::string text = fmt::format("\"{}\":{}", member->name, member->value);
    if (member->is("prompt")) {
      const auto prompt = json_string(member->value);
      if (!prompt) return wrong_line(number, "has a `prompt` that is no text");
      text = user_message(*prompt);
      asks = true;
    }
    asks = asks || (member->is("messages") && member->kind() == JsonKind::array);
    members += fmt::format("{}{}", members.empty() ? "" : ",", text);
  }
  if (!asks) return wrong_line(number, "has neither `messages` nor `prompt`");
  return members;
}

std::string prompt_members(const Plan& plan, std::uint64_t round, std::uint64_t request) {
  const Prompts& prompts = plan.prompts;
  // Each model gets the same prompts.
  const std::uint64_t turn = request / plan.models.size();
  if (prompts.kind == PromptKind::file) return prompts.members[turn % prompts.members.size()];
  if (prompts.kind == PromptKind::fixed) return user_message(kFixedPrompt);
  std::string text;
  if (prompts.shared_tokens > 0)
    text = made_text(derived(plan.seed, 1, 0), prompts.shared_tokens) + " ";
  text += made_text(derived(plan.seed, 2, round * plan.requests + turn), prompts.tokens);
  return user_message(text);
}

}  // namespace

std::string_view name_of(Dialect dialect) {
  return dialect == Dialect::openai ? "openai" : "anthropic";
}

std::string_view name_of(PromptKind kind) {
  switch (kind) {
    case PromptKind::fixed: return "fixed";
    case PromptKind::made: return "made";
    case PromptKind::file: return "file";
  }
  return "fixed";
}

std::string_view path_of(Dialect dialect) {
  return dialect == Dialect::openai ? "/chat/completions" : "/messages";
}

Result<Prompts> read_prompts(std::string_view text) {
  Prompts prompts;
  prompts.kind = PromptKind::file;
  prompts.digest = sha256_hex(text);
  std::size_t number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = trim(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (line.empty()) continue;
    if (!is_valid_utf8(line)) return wrong_line(number, "is no UTF-8");
    if (!line.starts_with('{')) {
      prompts.members.push_back(user_message(line));
      continue;
    }
    auto members = members_of(line, number);
    if (!members) return pass_on(members);
    prompts.members.push_back(std::move(*members));
  }
  if (prompts.members.empty())
    return fail(ErrorCode::invalid_request, "the file of prompts holds none");
  return prompts;
}

const std::string& model_of(const Plan& plan, std::uint64_t request) {
  return plan.models[request % plan.models.size()];
}

std::string body_of(const Plan& plan, std::uint64_t round, std::uint64_t request) {
  std::string body = fmt::format(R"({{"model":{},{},"max_tokens":{},"temperature":0,"stream":true)",
                                 to_json_string(model_of(plan, request)),
                                 prompt_members(plan, round, request), plan.max_tokens);
  if (plan.dialect == Dialect::openai) {
    body += fmt::format(R"(,"seed":{},"stream_options":{{"include_usage":true}})", plan.seed);
    if (plan.end_of_sequence == EndOfSequence::ignored) body += R"(,"ignore_eos":true)";
  }
  return body + "}";
}

std::vector<double> arrivals(const Plan& plan, std::uint64_t round, double rate) {
  Chance chance(derived(plan.seed, 3, round));
  std::vector<double> times;
  times.reserve(plan.requests);
  double now = 0;
  for (std::uint32_t i = 0; i < plan.requests; ++i) {
    times.push_back(now);
    now += -std::log(chance.share()) / rate;
  }
  return times;
}

std::string made_text(std::uint64_t seed, std::uint32_t tokens) {
  Chance chance(seed);
  std::string text;
  for (std::uint32_t i = 0; i < tokens; ++i) {
    if (i > 0) text += ' ';
    text += kWords[chance.next() % kWords.size()];
  }
  return text;
}

}  // namespace werk::app::bench
