#include "werk/runtime/permit_line.hpp"

#include <algorithm>

#include "werk/base/assert.hpp"

namespace werk::runtime {

PermitLine::Answer PermitLine::arrive(PermitRequest request) {
  WERK_ASSERT(request.weight > 0);
  if (permits_ != 0 && request.weight > permits_) return Answer::too_heavy;
  return enter(Standing{std::move(request)});
}

PermitLine::Answer PermitLine::arrive_exclusive(CallId call) {
  const std::size_t all = std::max<std::size_t>(permits_, 1);
  return enter(Standing{PermitRequest{call, all}, true});
}

PermitLine::Answer PermitLine::enter(Standing standing) {
  WERK_ASSERT(!running_.contains(standing.request.call));
  if (line_.empty() && fits(standing)) {
    run(standing);
    return Answer::granted;
  }
  if (line_.size() >= waiting_max_) return Answer::line_full;
  line_.push_back(std::move(standing));
  return Answer::waits;
}

bool PermitLine::fits(const Standing& standing) const {
  if (exclusive_runs_) return false;
  if (standing.exclusive) return running_.empty() && quarantined_ == 0;
  return permits_ == 0 || in_use_ + quarantined_ + standing.request.weight <= permits_;
}

void PermitLine::run(const Standing& standing) {
  running_[standing.request.call] = standing.request.weight;
  in_use_ += standing.request.weight;
  exclusive_runs_ = standing.exclusive;
}

std::vector<CallId> PermitLine::cancel(CallId call) {
  std::erase_if(line_, [&](const Standing& standing) { return standing.request.call == call; });
  return advance();  // who stood behind a heavy head may fit now
}

std::vector<CallId> PermitLine::release(CallId call, After after) {
  const auto found = running_.find(call);
  WERK_ASSERT(found != running_.end());
  in_use_ -= found->second;
  if (after == After::quarantine && permits_ != 0) quarantined_ += found->second;
  running_.erase(found);
  exclusive_runs_ = false;
  return advance();
}

std::vector<CallId> PermitLine::engine_works_on(std::size_t busy_slots) {
  const std::size_t strangers = busy_slots > in_use_ ? busy_slots - in_use_ : 0;
  quarantined_ = std::min(quarantined_, strangers);
  return advance();
}

std::vector<CallId> PermitLine::dismiss_waiting() {
  std::vector<CallId> dismissed;
  for (const Standing& standing : line_) dismissed.push_back(standing.request.call);
  line_.clear();
  return dismissed;
}

std::vector<CallId> PermitLine::advance() {
  std::vector<CallId> granted;
  while (!line_.empty() && fits(line_.front())) {
    run(line_.front());
    granted.push_back(line_.front().request.call);
    line_.pop_front();
  }
  return granted;
}

}  // namespace werk::runtime
