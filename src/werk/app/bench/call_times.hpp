// CallTimes: what a Werk node tells of calls that have ended (how long each waited for its model
// and for a slot), put to the requests of a run by the calls' ids. The node's page holds only its
// last calls, so it is read while the run goes on and after it; what fell out in between stays
// untold. Owned by a run, whose requests it fills in; pure.
#pragma once

#include <boost/json/object.hpp>
#include <cstddef>
#include <string>
#include <unordered_map>
#include <vector>

#include "werk/app/bench/record.hpp"

namespace werk::app::bench {

class CallTimes {
 public:
  // This request of the run has ended; its call has that id at the server.
  void expect(std::string id, std::size_t request);
  // Fills in what the page tells of expected calls. It has no times of a call that failed: what is
  // there is 0 for one that was refused after a minute in line, too.
  void read(const boost::json::object& page, std::vector<RequestRecord>& requests);
  // Whether the node hasn't done with an expected call, so that a later page will tell of it: the
  // client has an answer's last byte a little before the node has noted it.
  bool any_under_way(const boost::json::object& page) const;

 private:
  std::unordered_map<std::string, std::size_t> expected_;
};

}  // namespace werk::app::bench
