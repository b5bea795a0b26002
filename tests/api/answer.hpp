// An HTTP answer taken apart from the bytes that a client received: status, fields, decoded body,
// and how it ended. Strict where clients are: a body longer than its length or bytes after the last
// chunk are told. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace werk::test {

enum class AnswerTo : std::uint8_t { head_request, other_request };
enum class Connection : std::uint8_t { open, ended };

struct Answer {
  int status = 0;
  std::string head;
  std::string body;
  bool whole = false;  // by its own framing
  std::string fault;   // of the framing

  // The value of a field; none if it isn't there.
  std::optional<std::string_view> field(std::string_view name) const;
};

// What is known so far. Interim answers (1xx) are skipped.
Answer read_answer(std::string_view bytes, AnswerTo to, Connection connection);

}  // namespace werk::test
