// What the figures of the prompt cache are made with: conversations as a client keeps them, written
// as requests in either dialect; replies with the engine's count of prompt tokens; text without a
// meaning, the same in every run; and a node whose real engine has a chat template with a place for
// tools. Plain values and functions; failures throw.
#pragma once

#include <boost/json.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bench/support/programs.hpp"
#include "bench/support/wire.hpp"

namespace werk::bench {

// Words in an order of their own for each seed.
class Prose {
 public:
  explicit Prose(std::uint64_t seed) : state_(seed * 2 + 1) {}
  std::string words(std::size_t count);

 private:
  std::uint64_t state_;
};

struct Said {
  std::string role;  // user, assistant
  std::string text;
};

struct Conversation {
  std::string system;
  std::size_t tools = 0;  // how many of one list
  std::vector<Said> said;
};

// The same request to a reader of prompts, whatever the dialect: a whole answer, temperature 0.
boost::json::object request_of(Dialect dialect, std::string_view model,
                               const Conversation& conversation, std::uint64_t max_tokens);
// `count` tools in the dialect's shape.
boost::json::array tool_list(Dialect dialect, std::size_t count);

struct Reply {
  std::string text;
  std::uint64_t prompt_tokens = 0;
  std::uint64_t cached_tokens = 0;  // of these
  std::uint64_t new_tokens() const { return prompt_tokens - cached_tokens; }
};
Reply read_reply(Dialect dialect, const Answer& answer);
// What the engine read anew in one turn: the median of the conversations and their range.
void report_new_tokens(const std::string& goal, const std::string& name,
                       const std::vector<Reply>& turn);

// Whom to ask, and how.
struct Party {
  Endpoint endpoint;
  Dialect dialect = Dialect::openai;
  std::string model;
  std::string key;

  std::string request(const boost::json::object& body) const {
    return http_request("POST", target_of(dialect), boost::json::serialize(body), key);
  }
};

// A node with the real engine (one thread, `slots` of them), loaded and asked once. `engine_words`
// are further arguments of the engine.
std::unique_ptr<Node> node_with_tools(const Setting& setting, const Folder& folder,
                                      std::size_t slots, const std::vector<std::string>& arguments,
                                      const std::string& engine_words = {});
inline constexpr std::size_t kContextTokens = 4096;  // of each slot
// By default the engine takes a slot that holds a tenth of the prompt, and keeps what it drops
// there only if that is more than half. So it keeps what it drops nearly always.
inline constexpr std::string_view kStrictSlots = "--slot-prompt-similarity 0.9";

}  // namespace werk::bench
