// AnswerScan: what a benchmark wants to know of a streamed answer in either dialect: when something
// of the answer itself came (text, reasoning or a tool call), the usage, and whether it ended as it
// should. It walks over each event in place, without a tree, so that many streams cost little. Fed
// with the bytes as they arrive, cut anywhere. A plain value, one for each request.
#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "werk/app/bench/plan.hpp"
#include "werk/http/sse.hpp"

namespace werk::app::bench {

class AnswerScan {
 public:
  explicit AnswerScan(Dialect dialect) : dialect_(dialect) {}

  // How many events of these bytes hold a piece of the answer. engine_failed: an error that came as
  // an event, in the server's words, or what is no such stream.
  Result<std::uint32_t> feed(std::string_view bytes);
  // The stream has ended: engine_failed unless the answer is whole. A clean end without a finish
  // reason is a cut answer.
  Status finish();

  // As the server told it; none if it told none.
  const std::optional<boost::json::object>& usage() const { return usage_; }
  std::optional<std::uint64_t> completion_tokens() const;
  const std::string& finish_reason() const { return finish_reason_; }

 private:
  Result<bool> take(std::string_view data);
  Result<bool> take_chunk(std::string_view data);
  Result<bool> take_event(std::string_view data);
  void take_usage(std::string_view usage);

  Dialect dialect_;
  http::SseParser parser_;
  bool ended_ = false;
  bool output_told_ = false;
  std::string finish_reason_;
  std::optional<boost::json::object> usage_;
};

// The words of a server's error, in either dialect's envelope or another usual one; else what it
// wrote, shortened.
std::string error_words(std::string_view body);
// An error of our own HTTP client, which calls every peer an engine, as it is said of a server.
Error of_server(Error error);

}  // namespace werk::app::bench
