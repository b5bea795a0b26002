#include "tests/api/match.hpp"

#include <fmt/format.h>

#include <array>
#include <boost/json.hpp>
#include <optional>

#include "tests/api/exchange_file.hpp"

namespace werk::test {

namespace json = boost::json;

namespace {

struct Placeholder {
  std::string_view text;
  std::string_view allowed;  // bytes that it may stand for; empty: every one
};

constexpr std::string_view kIdBytes =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
constexpr std::array<Placeholder, 4> kPlaceholders = {{{"<any>", ""},
                                                       {"<id>", kIdBytes},
                                                       {"<number>", "0123456789.-"},
                                                       {"<time>", "0123456789-:TZ"}}};

std::optional<Placeholder> placeholder_at(std::string_view text) {
  for (const Placeholder& one : kPlaceholders) {
    if (text.starts_with(one.text)) return one;
  }
  return std::nullopt;
}

// Expected and actual line by line; '-' and '+' before lines that differ.
std::string side_by_side(std::string_view expected, std::string_view actual) {
  const auto wanted = lines_of(expected);
  const auto came = lines_of(actual);
  std::string out;
  for (std::size_t i = 0; i < std::max(wanted.size(), came.size()); ++i) {
    const bool both = i < wanted.size() && i < came.size();
    if (both && text_matches(wanted[i], came[i])) {
      out += fmt::format("    {}\n", came[i]);
      continue;
    }
    if (i < wanted.size()) out += fmt::format("  - {}\n", wanted[i]);
    if (i < came.size()) out += fmt::format("  + {}\n", came[i]);
  }
  return out;
}

std::string different(const std::string& where, const json::value& expected,
                      const json::value& actual) {
  return fmt::format("  at {}\n  - {}\n  + {}\n", where.empty() ? "/" : where,
                     json::serialize(expected), json::serialize(actual));
}

std::string compare(const std::string& where, const json::value& expected,
                    const json::value& actual);

std::string compare_objects(const std::string& where, const json::object& expected,
                            const json::object& actual) {
  std::string out;
  for (const auto& [key, value] : expected) {
    const json::value* other = actual.if_contains(key);
    const std::string inner = fmt::format("{}/{}", where, std::string_view(key));
    out += other ? compare(inner, value, *other) : fmt::format("  - {} is missing\n", inner);
  }
  for (const auto& [key, value] : actual) {
    if (!expected.contains(key))
      out += fmt::format("  + {}/{} is not expected: {}\n", where, std::string_view(key),
                         json::serialize(value));
  }
  return out;
}

std::string compare(const std::string& where, const json::value& expected,
                    const json::value& actual) {
  if (expected.is_string()) {
    const std::string_view text = expected.get_string();
    if (text == "<any>") return {};
    if (text == "<number>" && actual.is_number()) return {};
    if (actual.is_string() && text_matches(text, actual.get_string())) return {};
    return different(where, expected, actual);
  }
  if (expected.is_object() && actual.is_object())
    return compare_objects(where, expected.get_object(), actual.get_object());
  if (expected.is_array() && actual.is_array()) {
    const json::array& wanted = expected.get_array();
    const json::array& came = actual.get_array();
    if (wanted.size() != came.size()) return different(where, expected, actual);
    std::string out;
    for (std::size_t i = 0; i < wanted.size(); ++i)
      out += compare(fmt::format("{}/{}", where, i), wanted[i], came[i]);
    return out;
  }
  return expected == actual ? std::string() : different(where, expected, actual);
}

}  // namespace

bool text_matches(std::string_view expected, std::string_view actual) {
  while (!expected.empty()) {
    const auto placeholder = placeholder_at(expected);
    if (!placeholder) {
      if (actual.empty() || expected.front() != actual.front()) return false;
      expected.remove_prefix(1);
      actual.remove_prefix(1);
      continue;
    }
    const std::string_view rest = expected.substr(placeholder->text.size());
    const std::string_view allowed = placeholder->allowed;
    const std::size_t longest = allowed.empty()
                                    ? actual.size()
                                    : std::min(actual.find_first_not_of(allowed), actual.size());
    for (std::size_t taken = allowed.empty() ? 0 : 1; taken <= longest; ++taken) {
      if (text_matches(rest, actual.substr(taken))) return true;
    }
    return false;
  }
  return actual.empty();
}

std::string text_difference(std::string_view expected, std::string_view actual) {
  if (text_matches(expected, actual)) return {};
  std::string shown = side_by_side(expected, actual);
  if (shown.find("  - ") == std::string::npos && shown.find("  + ") == std::string::npos)
    shown += "  (the line feeds at the end differ)\n";
  return shown;
}

std::string json_difference(std::string_view expected, std::string_view actual) {
  json::error_code error;
  const json::value wanted = json::parse(expected, error);
  if (error) return fmt::format("  the expected text is no JSON: {}\n", error.message());
  const json::value came = json::parse(actual, error);
  if (error) return fmt::format("  + {}\n  which is no JSON: {}\n", actual, error.message());
  return compare("", wanted, came);
}

}  // namespace werk::test
