#include "werk/gateway/query.hpp"

#include <fmt/format.h>

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

Result<bool> query_switch(std::string_view name, std::string_view value) {
  if (value.empty() || value == "1" || value == "true") return true;
  if (value == "0" || value == "false") return false;
  Error error{ErrorCode::invalid_request,
              fmt::format("\"{}\" in the query is true or false, not \"{}\"", name,
                          printable(value.substr(0, 40))),
              Origin::client};
  error.param = name;
  return fail(std::move(error));
}

}  // namespace werk::gateway
