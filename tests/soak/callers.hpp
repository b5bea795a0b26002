// Callers: clients that ask a node for answers without a pause, leave some of them early, and count
// what they saw. Each on a thread of its own with a random engine of its own, so that a seed gives
// the same choices again; owned by the soak, which joins them.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace werk::test {

// What clients saw of their calls.
struct Seen {
  std::uint64_t made = 0;
  std::uint64_t whole = 0;    // answered to a proper end
  std::uint64_t refused = 0;  // another status, or an error within the stream
  std::uint64_t left = 0;     // by the client itself, at whatever moment
  std::uint64_t broken = 0;   // neither an end nor an error: never right
  Seen& operator+=(const Seen& other);
};

class Callers {
 public:
  Callers(std::uint16_t port, std::size_t count, std::uint64_t seed);
  Callers(const Callers&) = delete;
  Callers& operator=(const Callers&) = delete;
  ~Callers();

  // Returns when so many more calls have ended.
  void wait_for(std::uint64_t calls);
  // Lets them end what they are at; what all of them saw.
  Seen stop();

 private:
  void run(std::size_t index, std::uint64_t seed);

  std::uint16_t port_;
  std::atomic<bool> over_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t ended_ = 0;
  std::vector<Seen> seen_;
  std::vector<std::thread> threads_;
};

}  // namespace werk::test
