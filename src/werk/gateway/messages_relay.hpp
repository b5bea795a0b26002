// Messages between a client and a server that both speak it: the body goes on and the answer comes
// back as they are, but for the model's name, which is each side's own. The answer is looked at on
// its way: its tokens are read, an error in it is an error, and a stream must come to its proper
// end. The caller owns the relay, one per call; a plain value without I/O, any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "werk/base/json_scan.hpp"
#include "werk/base/result.hpp"
#include "werk/gateway/openai_stream.hpp"

namespace werk::gateway {

// What Werk must know of a request that it needn't understand.
struct MessagesOutline {
  std::optional<std::string> model;
  bool stream = false;
};
// Fails with invalid_request where the body is no JSON object, or where one of these members is of
// the wrong type or stands twice.
Result<MessagesOutline> outline_messages(std::string_view body);

// The body with another model's name, which is added where there was none; `body` passed
// outline_messages().
std::string with_model(std::string_view body, std::string_view model);

class MessagesRelay {
 public:
  enum class Form : std::uint8_t { events, whole };
  MessagesRelay(Form form, std::string client_model);

  Form form() const { return form_; }

  // One event of the server's stream; what the client gets of it goes to the end of `out`. Fails
  // with what the server's own error means, or with engine_failed where it is no event of this
  // dialect; the stream must then end with the error.
  Status event(std::string_view name, std::string_view data, std::string& out);
  // message_stop has come. What is behind it doesn't count.
  bool done() const { return done_; }
  // The stream has ended; engine_failed if it wasn't done.
  Status finish() const;

  // A whole answer for the client; fails as event() does.
  Result<std::string> whole(std::string_view body);

  // Tokens alone; the prompt's are with those from the cache.
  const ChatStreamFacts& facts() const { return facts_; }

 private:
  Status check(std::string_view name, std::string_view text);
  std::string relabelled(std::string_view text, std::string_view message);
  void note_usage(std::string_view usage);

  Form form_;
  std::string model_json_;
  JsonScanner scanner_;
  UsageFacts usage_;
  std::uint64_t input_tokens_ = 0;
  std::uint64_t written_tokens_ = 0;  // into the cache
  ChatStreamFacts facts_;
  bool done_ = false;
};

}  // namespace werk::gateway
