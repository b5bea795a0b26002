#include "werk/engine/worker/stop_gate.hpp"

#include <algorithm>

namespace werk::engine::worker {

StopGate::StopGate(std::vector<std::string> stops) : stops_(std::move(stops)) {
  std::erase_if(stops_, [](const std::string& stop) { return stop.empty(); });
}

void StopGate::take(std::string_view piece, std::string& out) {
  if (matched_) return;
  held_ += piece;
  std::size_t clear = 0;  // no stop string begins before
  for (; clear < held_.size(); ++clear) {
    const std::string_view rest = std::string_view(held_).substr(clear);
    const std::string* met = nullptr;
    bool may_come = false;
    for (const std::string& stop : stops_) {
      if (rest.starts_with(stop)) {
        if (met == nullptr || stop.size() > met->size()) met = &stop;
      } else if (std::string_view(stop).starts_with(rest)) {
        may_come = true;
      }
    }
    if (met != nullptr) {
      matched_ = *met;
      break;
    }
    if (may_come) break;
  }
  out += std::string_view(held_).substr(0, clear);
  held_.erase(0, clear);
  if (matched_) held_.clear();
}

void StopGate::finish(std::string& out) {
  if (!matched_) out += held_;
  held_.clear();
}

}  // namespace werk::engine::worker
