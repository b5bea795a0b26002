#include "tests/api/answer.hpp"

#include <charconv>

#include "tests/api/exchange_file.hpp"
#include "werk/base/text.hpp"

namespace werk::test {
namespace {

void read_chunks(Answer& answer, std::string_view bytes) {
  for (;;) {
    const std::size_t line = bytes.find("\r\n");
    if (line == std::string_view::npos) return;
    std::size_t size = 0;
    std::from_chars(bytes.data(), bytes.data() + line, size, 16);
    bytes.remove_prefix(line + 2);
    if (bytes.size() < size + 2) return;
    answer.body += bytes.substr(0, size);
    if (bytes.substr(size, 2) != "\r\n") answer.fault = "a chunk does not end with CRLF";
    bytes.remove_prefix(size + 2);
    if (size > 0) continue;
    answer.whole = true;
    if (!bytes.empty()) answer.fault = "bytes after the last chunk";
    return;
  }
}

}  // namespace

std::optional<std::string_view> Answer::field(std::string_view name) const {
  for (std::string_view line : lines_of(head)) {
    const std::size_t colon = line.find(':');
    if (colon != std::string_view::npos && equals_ignoring_case(line.substr(0, colon), name))
      return trim(line.substr(colon + 1));
  }
  return std::nullopt;
}

Answer read_answer(std::string_view bytes, AnswerTo to, Connection connection) {
  Answer answer;
  const std::size_t end = bytes.find("\r\n\r\n");
  if (end == std::string_view::npos) return answer;
  answer.head = bytes.substr(0, end);
  std::erase(answer.head, '\r');
  bytes.remove_prefix(end + 4);
  if (answer.head.size() > 12)
    std::from_chars(answer.head.data() + 9, answer.head.data() + 12, answer.status);
  if (answer.status / 100 == 1) return read_answer(bytes, to, connection);
  const auto length = answer.field("Content-Length");
  const auto coding = answer.field("Transfer-Encoding");
  if (length && coding) answer.fault = "both a length and a transfer coding";
  if (to == AnswerTo::head_request || answer.status == 204) {
    answer.whole = true;
    if (!bytes.empty()) answer.fault = "a body where none may be";
  } else if (coding) {
    read_chunks(answer, bytes);
  } else if (length) {
    const std::size_t size = std::stoul(std::string(*length));
    answer.body = bytes;
    answer.whole = bytes.size() >= size;
    if (bytes.size() > size) answer.fault = "the body is longer than its length";
  } else {
    answer.body = bytes;
    answer.whole = connection == Connection::ended;
  }
  return answer;
}

}  // namespace werk::test
