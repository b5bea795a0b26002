#include "werk/gateway/query.hpp"

#include <fmt/format.h>

#include <charconv>

#include "werk/base/text.hpp"
#include "werk/gateway/routes.hpp"

namespace werk::gateway {

std::optional<std::string> query_value(std::string_view query, std::string_view name) {
  while (!query.empty()) {
    const std::size_t end = std::min(query.find('&'), query.size());
    const std::string_view piece = query.substr(0, end);
    query.remove_prefix(std::min(end + 1, query.size()));
    const std::size_t equals = std::min(piece.find('='), piece.size());
    if (percent_decoded(piece.substr(0, equals)) != name) continue;
    return percent_decoded(piece.substr(std::min(equals + 1, piece.size())));
  }
  return std::nullopt;
}

namespace {

Error wrong_value(std::string_view name, std::string_view value, std::string_view wanted) {
  Error error{ErrorCode::invalid_request,
              fmt::format("\"{}\" in the query is {}, not \"{}\"", name, wanted,
                          printable(value.substr(0, 40))),
              Origin::client};
  error.param = name;
  return error;
}

}  // namespace

Result<bool> query_switch(std::string_view name, std::string_view value) {
  if (value.empty() || value == "1" || value == "true") return true;
  if (value == "0" || value == "false") return false;
  return fail(wrong_value(name, value, "true or false"));
}

Result<std::uint64_t> query_number(std::string_view name, std::string_view value,
                                   std::uint64_t most) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  const bool whole = error == std::errc() && end == value.data() + value.size() && !value.empty();
  if (whole && number <= most) return number;
  return fail(wrong_value(name, value, fmt::format("a number from 0 to {}", most)));
}

}  // namespace werk::gateway
