// What a hub's refusal means to a person: an answer's status and its own words become an error that
// says what to do. Pure; any thread.
#pragma once

#include <string_view>

#include "werk/app/hub.hpp"
#include "werk/app/hub_fetch.hpp"

namespace werk::app {

struct HubQuestion {
  std::string_view repository;
  std::string_view revision;
  std::string_view file;  // or empty
};

// Whether the same question may be answered later: too many requests, a fault of the hub's.
bool may_pass(int status);
Error hub_refusal(const HubAccess& hub, const HubQuestion& question, const FetchHead& head);
// A fault below HTTP.
Error hub_unreachable(const HubAccess& hub, const HubQuestion& question, const Fetched& fetched);

}  // namespace werk::app
