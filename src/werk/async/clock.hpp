// Clock: the only source of time for code that decides or waits. SteadyClock is the machine's;
// tests use ManualClock (tests/support) and advance it by hand. A Timer calls back once, on the
// loop thread, unless it is destroyed first. Deadline turns a limit into a stop token; sleep_for
// waits. Loop thread only.
#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "werk/async/awaitable.hpp"

namespace werk::async {

using TimePoint = std::chrono::steady_clock::time_point;
using Duration = std::chrono::steady_clock::duration;

// A callback that is due once; destroying it before then cancels it.
class Timer {
 public:
  virtual ~Timer() = default;
};

class Clock {
 public:
  virtual ~Clock() = default;
  virtual TimePoint now() const = 0;
  [[nodiscard]] virtual std::unique_ptr<Timer> call_at(TimePoint due,
                                                       std::function<void()> callback) = 0;
};

class SteadyClock final : public Clock {
 public:
  explicit SteadyClock(Executor executor) : executor_(std::move(executor)) {}
  TimePoint now() const override { return std::chrono::steady_clock::now(); }
  [[nodiscard]] std::unique_ptr<Timer> call_at(TimePoint due,
                                               std::function<void()> callback) override;

 private:
  Executor executor_;
};

// Requests a stop on its own token when the limit has passed or when the outer token stops,
// whichever is first. A limit of zero or less never expires by itself.
class Deadline {
 public:
  Deadline(Clock& clock, Duration limit, std::stop_token outer);
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;

  std::stop_token token() const { return source_.get_token(); }
  // True only if it was the limit that passed, not the outer stop.
  bool expired() const { return expired_; }
  // Starts the limit anew from now, for limits on silence.
  void restart();

 private:
  void arm();

  Clock& clock_;
  Duration limit_;
  std::stop_source source_;
  bool expired_ = false;
  std::stop_callback<std::function<void()>> outer_;
  std::unique_ptr<Timer> timer_;
};

// True: slept the whole time. False: stopped early.
awaitable<bool> sleep_for(Clock& clock, Executor executor, Duration duration, std::stop_token stop);

}  // namespace werk::async
