// Many streams at once, each of which is asked for once and read to its end, with the longest time
// that any of them waited for its next text. Owned by a benchmark, which lets it read for a while
// and looks at the servers in between. Single thread; failures throw.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bench/support/load.hpp"
#include "bench/support/wire.hpp"

namespace werk::bench {

struct CrowdAsk {
  Endpoint endpoint;
  Dialect dialect = Dialect::openai;
  std::string request;
  std::uint64_t expected_hash = 0;  // of each answer's text
};

class Crowd {
 public:
  Crowd();
  Crowd(const Crowd&) = delete;
  Crowd& operator=(const Crowd&) = delete;
  ~Crowd();

  // So many more streams, each on a connection of its own. What comes meanwhile is read.
  void ask(const CrowdAsk& ask, std::size_t count);
  void read_for(std::chrono::milliseconds length);
  // False if some have not ended after the limit.
  bool read_to_end(std::chrono::milliseconds limit);
  void leave();  // closes all connections

  std::size_t under_way() const { return open_ - waiting_; }  // text has come, more will
  std::size_t right() const { return right_; }                // ended whole, with the expected text
  std::size_t broken() const { return broken_; }              // ended in any other way
  double longest_wait_ms() const { return longest_wait_us_ / 1000; }  // for a text

 private:
  struct Stream {
    int file = -1;
    std::uint64_t expected_hash = 0;
    SteadyTime last;  // when it was asked for, then its last text
    ResponseReader reader;
    TextReader text;
    std::string body;
  };
  void read(Stream& stream);
  void end(Stream& stream, bool right);
  void read_once(int wait_ms);

  int poll_ = -1;
  std::vector<std::unique_ptr<Stream>> streams_;
  std::size_t open_ = 0;
  std::size_t waiting_ = 0;  // of those, without any text yet
  std::size_t right_ = 0;
  std::size_t broken_ = 0;
  double longest_wait_us_ = 0;
  std::vector<char> buffer_;
};

}  // namespace werk::bench
