// BodyBudget: how many bytes of request bodies the node holds at a time, over all calls. A BodyHold
// is one call's share and gives it back when it goes. Loop thread only.
#pragma once

#include <cstdint>

namespace werk::gateway {

class BodyBudget {
 public:
  explicit BodyBudget(std::uint64_t bytes_max) : bytes_max_(bytes_max) {}
  std::uint64_t bytes_max() const { return bytes_max_; }

 private:
  friend class BodyHold;
  std::uint64_t bytes_max_;
  std::uint64_t bytes_held_ = 0;
};

class BodyHold {
 public:
  explicit BodyHold(BodyBudget& budget) : budget_(budget) {}
  BodyHold(const BodyHold&) = delete;
  BodyHold& operator=(const BodyHold&) = delete;
  ~BodyHold() { budget_.bytes_held_ -= bytes_; }

  // False: the budget is used up.
  bool add(std::uint64_t bytes) {
    if (bytes > budget_.bytes_max_ - budget_.bytes_held_) return false;
    budget_.bytes_held_ += bytes;
    bytes_ += bytes;
    return true;
  }

 private:
  BodyBudget& budget_;
  std::uint64_t bytes_ = 0;
};

}  // namespace werk::gateway
