// PermitLine: which of the calls that hold a lease on one runtime may run now. A pure decision,
// first in first out by arrival. A call weighs as many permits as it has choices (n); an exclusive
// one (state operations) takes them all. A permit whose caller left while the engine may still hold
// its slot is *quarantined*: it stays taken until the engine was seen to work on no more than the
// calls that really run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

namespace werk::runtime {

using CallId = std::uint64_t;

struct PermitRequest {
  CallId call = 0;
  std::size_t weight = 1;  // permits it takes while it runs
  std::string client =
      {};  // who asks; order between clients is by arrival, a later policy may use it
};

class PermitLine {
 public:
  enum class Answer : std::uint8_t { granted, waits, line_full, too_heavy };
  enum class After : std::uint8_t { free, quarantine };

  // permits 0: no limit (the engine queues well itself). waiting_max: how many calls may stand in
  // the line.
  PermitLine(std::size_t permits, std::size_t waiting_max)
      : permits_(permits), waiting_max_(waiting_max) {}

  Answer arrive(PermitRequest request);
  Answer arrive_exclusive(CallId call);
  // Each of these returns the calls that may run from now on, in order.
  std::vector<CallId> cancel(CallId call);  // a waiting call leaves; unknown ones are ignored
  std::vector<CallId> release(CallId call, After after);
  // What the engine was seen to work on: quarantined permits beyond that are free again.
  std::vector<CallId> engine_works_on(std::size_t busy_slots);
  // Empties the line (the runtime is dead or the node drains) and returns who stood in it.
  std::vector<CallId> dismiss_waiting();

  std::size_t permits() const { return permits_; }
  std::size_t in_use() const { return in_use_; }
  std::size_t quarantined() const { return quarantined_; }
  std::size_t waiting() const { return line_.size(); }

 private:
  struct Standing {
    PermitRequest request;
    bool exclusive = false;
  };
  bool fits(const Standing& standing) const;
  void run(const Standing& standing);
  Answer enter(Standing standing);
  std::vector<CallId> advance();

  std::size_t permits_;
  std::size_t waiting_max_;
  std::deque<Standing> line_;
  std::map<CallId, std::size_t> running_;  // call -> permits it holds
  std::size_t in_use_ = 0;
  std::size_t quarantined_ = 0;
  bool exclusive_runs_ = false;
};

}  // namespace werk::runtime
