#include "werk/app/request_defaults.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "werk/base/text.hpp"

namespace werk::app {
namespace {

enum class Kind : std::uint8_t { number, whole, texts, effort, truth, table };

struct Member {
  std::string_view name;
  Kind kind = Kind::number;
  double least = 0;
  double most = 0;
};

constexpr double kTokensMost = 2147483647;
constexpr double kSeedMost = 4294967295;
constexpr double kPenaltyMost = 2;

constexpr std::array<Member, 15> kMembers{{
    {"temperature", Kind::number, 0, 10},
    {"top_p", Kind::number, 0, 1},
    {"top_k", Kind::whole, 0, kTokensMost},
    {"min_p", Kind::number, 0, 1},
    {"typical_p", Kind::number, 0, 1},
    {"max_tokens", Kind::whole, 1, kTokensMost},
    {"stop", Kind::texts},
    {"seed", Kind::whole, -1, kSeedMost},
    {"presence_penalty", Kind::number, -kPenaltyMost, kPenaltyMost},
    {"frequency_penalty", Kind::number, -kPenaltyMost, kPenaltyMost},
    {"repeat_penalty", Kind::number, 0, 10},
    {"repeat_last_n", Kind::whole, -1, kTokensMost},
    {"reasoning_effort", Kind::effort},
    {"parallel_tool_calls", Kind::truth},
    {"chat_template_kwargs", Kind::table},
}};

tl::unexpected<Error> takes(std::string_view wanted, const ConfigValue& value) {
  return fail(ErrorCode::invalid_request, fmt::format("takes {}, not {}", wanted, kind_of(value)));
}

Result<std::string> read_number(const Member& member, const ConfigValue& value) {
  const auto* whole = std::get_if<std::int64_t>(&value.held);
  const auto* real = std::get_if<double>(&value.held);
  const bool is_whole = member.kind == Kind::whole;
  const std::string_view wanted = is_whole ? "a whole number" : "a number";
  if (whole == nullptr && (real == nullptr || is_whole)) return takes(wanted, value);
  const double number = whole != nullptr ? static_cast<double>(*whole) : *real;
  // Written so that what is no number at all fails too.
  if (!(number >= member.least && number <= member.most)) {
    return fail(ErrorCode::invalid_request, fmt::format("takes {} from {} to {}, not {}", wanted,
                                                        member.least, member.most, number));
  }
  return json_of(value);
}

Result<std::string> read_texts(const ConfigValue& value) {
  constexpr std::string_view kWanted = "a string or a list of strings";
  const auto is_text = [](const ConfigValue& one) {
    const auto* text = std::get_if<std::string>(&one.held);
    return text != nullptr && !text->empty();
  };
  if (is_text(value)) return json_of(value);
  const auto* list = std::get_if<ConfigList>(&value.held);
  if (list == nullptr) return takes(kWanted, value);
  if (!std::ranges::all_of(*list, is_text)) {
    return fail(ErrorCode::invalid_request, fmt::format("takes {}, none of them empty", kWanted));
  }
  return json_of(value);
}

Result<std::string> read_effort(const ConfigValue& value) {
  static const std::vector<std::string> kEfforts = {"none",   "minimal", "low",
                                                    "medium", "high",    "xhigh"};
  const auto* text = std::get_if<std::string>(&value.held);
  if (text == nullptr) return takes("a string", value);
  if (std::ranges::find(kEfforts, *text) == kEfforts.end()) {
    return fail(ErrorCode::invalid_request,
                fmt::format("takes {}, not \"{}\"", fmt::join(kEfforts, ", "), printable(*text)));
  }
  return json_of(value);
}

}  // namespace

std::vector<std::string> request_default_names() {
  std::vector<std::string> names;
  for (const Member& member : kMembers) names.emplace_back(member.name);
  return names;
}

Result<std::string> request_default(std::string_view name, const ConfigValue& value) {
  const auto member = std::ranges::find(kMembers, name, &Member::name);
  if (member == kMembers.end())
    return fail(ErrorCode::not_found, fmt::format("{} is not known", printable(name)));
  switch (member->kind) {
    case Kind::number:
    case Kind::whole: return read_number(*member, value);
    case Kind::texts: return read_texts(value);
    case Kind::effort: return read_effort(value);
    case Kind::truth:
      if (!std::holds_alternative<bool>(value.held)) return takes("true or false", value);
      return json_of(value);
    case Kind::table:
      if (!std::holds_alternative<ConfigTable>(value.held)) return takes("a table", value);
      return json_of(value);
  }
  return fail(ErrorCode::internal, "has no kind");
}

}  // namespace werk::app
