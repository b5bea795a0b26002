// Calls as JSON: those under way, and those that have ended. What the observability page and the
// events say of a call is written here once. Pure; no content of a call, no key.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "werk/gateway/calls.hpp"

namespace werk::gateway {

inline constexpr std::size_t kActiveCallsMax = 256;

struct ActiveCalls {
  boost::json::array list;  // oldest first
  std::size_t left_off = 0;
};

ActiveCalls active_calls(const Calls& calls);
// Newest first.
boost::json::array recent_calls(const Calls& calls);
boost::json::object recent_call(const CallRecord& record);

}  // namespace werk::gateway
