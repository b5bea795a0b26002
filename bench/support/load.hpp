// The load generator: N connections kept alive on one epoll loop, each asking again as soon as its
// answer is whole (a closed loop). Of each answer it counts the text events, hashes the text, reads
// the tokens from `usage` and takes two times: to the first text and to the end. Owned by a
// benchmark; its connections live through several slices, so that two servers can be measured in
// turn with everything warm. Single thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "bench/support/wire.hpp"

namespace werk::bench {

using SteadyTime = std::chrono::steady_clock::time_point;
inline SteadyTime steady_now() { return std::chrono::steady_clock::now(); }
inline double microseconds_between(SteadyTime from, SteadyTime to) {
  return std::chrono::duration<double, std::micro>(to - from).count();
}

// FNV-1a.
inline constexpr std::uint64_t kHashStart = 0xcbf29ce484222325u;
std::uint64_t hash_more(std::uint64_t hash, std::string_view text);

// Finds the text in answers, streamed or whole.
class TextReader {
 public:
  explicit TextReader(Dialect dialect = Dialect::openai) : dialect_(dialect) {}

  // Takes whole lines off the front of `body`; with `ended`, all of it.
  enum class More : std::uint8_t { comes, ended };
  void read(std::string& body, More more);
  std::uint64_t events() const { return events_; }  // that held text
  std::uint64_t tokens() const { return tokens_; }
  std::uint64_t hash() const { return hash_; }

 private:
  void line(std::string_view text);
  Dialect dialect_;
  std::uint64_t events_ = 0;
  std::uint64_t tokens_ = 0;
  std::uint64_t hash_ = kHashStart;
};

// One caller that isn't like the others: where it asks, and what, in turn.
struct LoadRequest {
  Dialect dialect = Dialect::openai;
  std::string bytes;
};
struct LoadClient {
  Endpoint endpoint;
  std::vector<LoadRequest> requests;
};

struct LoadPlan {
  Endpoint endpoint;
  Dialect dialect = Dialect::openai;
  // Whole requests; a connection's k-th is number (its own index + k) modulo how many there are.
  std::vector<std::string> requests;
  std::size_t connections = 1;
  std::uint64_t expected_hash = 0;       // of each answer's text; 0: not checked
  std::vector<LoadClient> clients = {};  // a connection each, instead of those above
};

struct LoadResult {
  double seconds = 0;  // from the first request to the last answer
  std::uint64_t answers = 0;
  std::uint64_t failures = 0;  // connections lost, statuses other than 200, other text
  std::uint64_t events = 0;
  std::uint64_t tokens = 0;
  std::vector<std::uint64_t> tokens_of;  // each connection's
  std::vector<double> whole_us;
  std::vector<double> first_us;
  std::string first_failure;
};

class Load {
 public:
  explicit Load(LoadPlan plan);
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;
  ~Load();

  // No new request after so long; those under way are awaited and counted.
  LoadResult run_for(std::chrono::milliseconds length);
  LoadResult run_times(std::uint64_t requests_per_connection);

 private:
  struct Connection {
    int file = -1;
    std::size_t index = 0;
    std::uint64_t asked = 0;
    std::uint64_t left = 0;  // of this run
    bool busy = false;
    bool retried = false;
    SteadyTime sent;
    double first_us = 0;
    ResponseReader reader;
    TextReader text;
    std::string body;
  };
  LoadResult run(std::uint64_t requests_per_connection, SteadyTime until);
  void open(Connection& connection);
  const Endpoint& endpoint_of(const Connection& connection) const;
  const std::string& begin_request(Connection& connection) const;
  void send(Connection& connection);
  void receive(Connection& connection);
  void finish(Connection& connection, SteadyTime arrived);
  void fail(Connection& connection, std::string_view why);
  void go_on(Connection& connection);

  LoadPlan plan_;
  int poll_ = -1;
  std::vector<Connection> connections_;
  std::size_t busy_ = 0;
  SteadyTime until_;
  LoadResult result_;
  std::vector<char> buffer_;
};

}  // namespace werk::bench
