// The query of a target: "a=1&b" in pieces, percent-decoded. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "werk/base/result.hpp"

namespace werk::gateway {

// The first value of that name; "" for a name without one.
std::optional<std::string> query_value(std::string_view query, std::string_view name);

// "true", "1" and a name without a value are true, "false" and "0" are false; else invalid_request.
Result<bool> query_switch(std::string_view name, std::string_view value);

// A whole number up to `most`; else invalid_request.
Result<std::uint64_t> query_number(std::string_view name, std::string_view value,
                                   std::uint64_t most);

}  // namespace werk::gateway
