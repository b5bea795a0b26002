// Call: what is recorded of one generation request, once, whatever happens to it: the access line
// and the counters. Created when a request arrives, ended by its destructor. Calls owns the
// counters. Loop thread only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "werk/async/clock.hpp"
#include "werk/base/error.hpp"

namespace werk::gateway {

struct CallCounters {
  std::uint64_t active = 0;
  std::uint64_t served = 0;
  std::uint64_t failed = 0;
  std::uint64_t cancelled = 0;
};

class Call {
 public:
  enum class Outcome : std::uint8_t { served, failed, cancelled };

  Call(CallCounters& counters, async::Clock& clock, std::string id, std::string route);
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  ~Call();

  const std::string& id() const { return id_; }
  // The answer itself begins, whatever was sent to bridge the wait.
  void first_byte();
  bool answer_has_begun() const { return first_byte_.has_value(); }
  void ended(Outcome outcome);
  void failed(const Error& error);
  void cancelled() { ended(Outcome::cancelled); }

  std::string model;
  async::Duration load_time{};
  async::Duration permit_time{};
  std::optional<std::uint64_t> prompt_tokens;
  std::optional<std::uint64_t> cached_tokens;
  std::optional<std::uint64_t> completion_tokens;
  int status = 200;

 private:
  CallCounters& counters_;
  async::Clock& clock_;
  std::string id_;
  std::string route_;
  async::TimePoint begun_;
  std::optional<async::Duration> first_byte_;
  Outcome outcome_ = Outcome::failed;
  std::string cause_;
};

}  // namespace werk::gateway
