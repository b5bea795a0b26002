#include "werk/app/bench/call_times.hpp"

#include <algorithm>
#include <string_view>

#include "werk/app/node_page.hpp"

namespace werk::app::bench {

namespace json = boost::json;

namespace {

// The objects of a list of the page; anything else in it is passed over.
std::vector<const json::object*> calls_in(const json::object& page, std::string_view list) {
  std::vector<const json::object*> calls;
  for (const json::value& call : array_in(page, list)) {
    if (call.is_object()) calls.push_back(&call.get_object());
  }
  return calls;
}

}  // namespace

void CallTimes::expect(std::string id, std::size_t request) {
  expected_.insert_or_assign(std::move(id), request);
}

// The latest call stands first, and only it counts: a request may have been sent again over a new
// connection.
void CallTimes::read(const json::object& page, std::vector<RequestRecord>& requests) {
  for (const json::object* call : calls_in(page, "recent_calls")) {
    const auto expected = expected_.find(text_in(*call, "id"));
    if (expected == expected_.end()) continue;
    RequestRecord& request = requests[expected->second];
    expected_.erase(expected);
    if (text_in(*call, "outcome") != "served") continue;
    request.queue_seconds = figure_in(*call, "wait_s");
    request.load_seconds = figure_in(*call, "load_s");
  }
}

bool CallTimes::any_under_way(const json::object& page) const {
  return std::ranges::any_of(calls_in(page, "active_calls"), [this](const json::object* call) {
    return expected_.contains(text_in(*call, "id"));
  });
}

}  // namespace werk::app::bench
