// A benchmark's side of the mock engine: the events that mocks tell through a named pipe, with the
// times at which they happened on the clock all processes share, and the requests and texts that
// the mock understands (mock.cpp lists both). Owned by one benchmark. Single thread; failures
// throw.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "bench/support/wire.hpp"

namespace werk::bench {

struct MockEvent {
  std::string name;  // spawned, ready, request, closed
  long pid = 0;
  std::int64_t at_us = 0;    // of the steady clock
  std::uint64_t number = 0;  // spawned: the TCP port; request, closed: which request
};

class MockEvents {
 public:
  explicit MockEvents(std::filesystem::path pipe);
  MockEvents(const MockEvents&) = delete;
  MockEvents& operator=(const MockEvents&) = delete;
  ~MockEvents();

  // For the environment of whoever starts mocks.
  std::string variable() const { return "BENCH_MOCK_EVENTS=" + pipe_.string(); }
  // The next one of that name, others passed over; waits for it.
  MockEvent expect(std::string_view name);
  // All that have come, oldest first; none of them comes again.
  std::vector<MockEvent> take_all();

 private:
  void read(int wait_ms);
  std::filesystem::path pipe_;
  int file_ = -1;
  std::string pending_;
  std::deque<MockEvent> events_;
};

std::int64_t steady_us();

// What a mock does with a request beside answering `tokens` words at once. All but `tokens` travels
// in the prompt's text, which a node leaves alone in every dialect.
struct MockOrder {
  std::uint64_t tokens = 8;
  std::uint64_t pace_us = 0;   // between two words
  std::string_view hold = {};  // "prefill": the head and a progress event, then nothing
};
// A chat request's body. `to_engine`: as a node would send it on, for those who ask past the node.
enum class Audience : std::uint8_t { node_whole, node_stream, engine };
std::string mock_body(Dialect dialect, std::string_view model, Audience audience,
                      const MockOrder& order);
std::string mock_request(Dialect dialect, std::string_view model, Audience audience,
                         const MockOrder& order, std::string_view key = {});
// The text of its answer, hashed as the load generator hashes it.
std::uint64_t mock_text_hash(std::uint64_t tokens);
std::string mock_word(std::uint64_t index);

}  // namespace werk::bench
