// What a client makes of a chat completion, streamed or whole: the text joined, the tool calls put
// together by index, how it ended. Written apart from the gateway's own reader, so that one can't
// hide a fault of the other. Plain values, any thread; bytes that are no proper answer throw.
#pragma once

#include <boost/json.hpp>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace werk::test {

struct AnsweredCall {
  std::string id;
  std::string name;
  std::string arguments;
  bool operator==(const AnsweredCall&) const = default;
};

struct ChatAnswer {
  std::string content;
  std::string reasoning;
  std::map<std::uint64_t, AnsweredCall> calls;  // by index
  std::string finish_reason;
  std::vector<boost::json::object> usages;
  boost::json::object error;         // empty: none
  bool done = false;                 // the end marker came
  std::size_t events_after_end = 0;  // behind the end marker or an error
  std::vector<boost::json::object> chunks;
};

// The events of a streamed answer, of choice 0.
ChatAnswer read_stream(std::string_view body);
// The JSON of a whole one, or of an error.
ChatAnswer read_whole(std::string_view body);

// The member of an error as text; "" if it isn't there.
std::string error_text(const ChatAnswer& answer, std::string_view member);

}  // namespace werk::test
