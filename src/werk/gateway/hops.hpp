// Which nodes a request has come through: the header X-Werk-Hops, by which nodes that have one
// another as remotes notice that a request goes round. Every node adds its id, made anew at each
// start, to what it sends to another server, and refuses a request that has its id already, or that
// has come through too many. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "werk/base/result.hpp"
#include "werk/http/headers.hpp"

namespace werk::gateway {

inline constexpr std::string_view kHopsHeader = "X-Werk-Hops";
inline constexpr std::size_t kHopsMax = 8;
inline constexpr std::size_t kHopIdBytesMax = 64;

// Fails with loop_detected as said above, and with invalid_request where the list can't be read:
// what can't be read can't rule a loop out. Ids are letters, digits, '-' and '_', separated by
// commas; the header may stand several times (RFC 9110, 5.3).
Status check_hops(const http::Headers& headers, std::string_view own_id);

// What goes on to another server with a request that passed the check.
std::string hops_onward(const http::Headers& headers, std::string_view own_id);

}  // namespace werk::gateway
