// Generation: one answer of the fake to POST /v1/chat/completions, streamed or whole, as v0.5.0
// sends it, or as its Reply asks otherwise. Lives on its connection's thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "tests/support/fake_engine/fake.hpp"

namespace werk::fake {

class Generation {
 public:
  Generation(Fake& fake, Call& call, Connection& connection, const Request& request);

  enum class Ended : std::uint8_t {
    whole,   // the answer was sent; the connection may be used again
    left,    // the client went away
    broken,  // ended badly on purpose, or the connection has to close
  };
  Ended run();

 private:
  enum class Kind : std::uint8_t { other, token };

  bool read_body();
  void prepare();
  Ended fail(unsigned status, const json::object& error);
  bool send_head();
  bool send_events();
  bool send_choices();
  bool send_choice_text(std::uint64_t token);
  bool send_tool_calls();
  bool send_end();
  bool send_whole();
  // Waits for what the reply wants before this event and sends it (of a whole answer: only counts
  // it).
  bool emit(std::string_view data, Kind kind);
  bool may_go_on(Kind kind);
  bool fulfil(const std::function<bool()>& condition);
  bool write(std::string_view bytes);
  bool flush();
  std::string framed(std::string_view data) const;
  bool end_badly();
  bool end_by_core();
  std::string chunk(std::uint64_t choice, std::string_view delta, std::string_view finish) const;
  std::string token_text(std::uint64_t token) const;
  std::string usage() const;
  void tell_end(std::string_view event);
  void stop(Ended why) { ended_ = why; }

  Fake& fake_;
  Call& call_;
  Connection& connection_;
  const Request& request_;
  Reply reply_;
  Ended ended_ = Ended::whole;

  bool stream_ = false;
  bool return_progress_ = false;
  bool include_usage_ = false;
  std::uint64_t choices_ = 1;
  std::uint64_t tokens_ = 0;
  std::string finish_reason_;
  std::string chunk_tail_;  // what every chunk ends with

  std::uint64_t events_ = 0;
  std::uint64_t steps_taken_ = 0;
  std::uint64_t releases_taken_ = 0;
  std::uint64_t buffered_events_ = 0;
  std::string buffer_;
  std::chrono::steady_clock::time_point next_token_;
};

}  // namespace werk::fake
