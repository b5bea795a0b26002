#include "werk/engine/worker/tool_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <optional>
#include <utility>

#include "werk/base/json_cursor.hpp"

namespace werk::engine::worker {

namespace json = boost::json;

namespace {

// {"name": ..., "arguments": {...}} between two marks.
constexpr std::array<ToolFormat, 1> kFormats = {{{"hermes", "<tool_call>", "</tool_call>"}}};
// A longer call is no call.
constexpr std::size_t kCallBytesMax = std::size_t{4} << 20;
constexpr std::string_view kBlanks = " \t\r\n";

struct Call {
  std::string name;
  std::string arguments;
};

std::optional<Call> read_call(std::string_view text) {
  boost::system::error_code error;
  const json::value value = json::parse(text, error);
  if (error || !value.is_object()) return std::nullopt;
  const json::value* name = value.get_object().if_contains("name");
  if (name == nullptr || !name->is_string() || name->get_string().empty()) return std::nullopt;
  const json::value* arguments = value.get_object().if_contains("arguments");
  if (arguments != nullptr && !arguments->is_object() && !arguments->is_null()) return std::nullopt;
  const bool has_some = arguments != nullptr && arguments->is_object();
  // As the model spelled them.
  const auto spelled = find_member(trim_json(text), "arguments");
  return Call{std::string(name->get_string()),
              has_some && spelled ? std::string(*spelled) : std::string("{}")};
}

// How much of the end of `text` may be blanks and the beginning of `mark`.
std::size_t undecided(std::string_view text, std::string_view mark) {
  std::size_t begun = 0;
  for (std::size_t length = std::min(text.size(), mark.size() - 1); length > 0; --length) {
    if (text.ends_with(mark.substr(0, length))) {
      begun = length;
      break;
    }
  }
  const std::string_view before = text.substr(0, text.size() - begun);
  const std::size_t last = before.find_last_not_of(kBlanks);
  const std::size_t blanks =
      last == std::string_view::npos ? before.size() : before.size() - last - 1;
  return begun + blanks;
}

}  // namespace

std::span<const ToolFormat> tool_formats() { return kFormats; }

Status ToolText::take(std::string_view piece, chat::EventSink& sink) {
  held_ += piece;
  bool again = true;
  while (again) {
    if (Status status = advance(sink, again); !status) return status;
  }
  return {};
}

Status ToolText::advance(chat::EventSink& sink, bool& again) {
  again = false;
  const std::string_view mark = inside_ ? format_.close : format_.open;
  const std::size_t at = held_.find(mark);
  if (at != std::string::npos) {
    again = true;
    const std::string before = held_.substr(0, at);
    held_.erase(0, at + mark.size());
    const bool was_inside = inside_;
    inside_ = !inside_;
    if (was_inside) return call(before, sink);
    // Blanks between text and a call, or between two calls, are no text.
    const std::size_t last = before.find_last_not_of(kBlanks);
    return text(last == std::string::npos ? std::string_view()
                                          : std::string_view(before).substr(0, last + 1),
                sink);
  }
  if (inside_) {
    if (held_.size() <= kCallBytesMax) return {};
    inside_ = false;
    const std::string lost = std::string(format_.open) + std::exchange(held_, {});
    return text(lost, sink);
  }
  const std::size_t keep = undecided(held_, mark);
  const std::string clear = held_.substr(0, held_.size() - keep);
  held_.erase(0, clear.size());
  return text(clear, sink);
}

Status ToolText::finish(chat::EventSink& sink) {
  const std::string rest = std::exchange(held_, {});
  if (inside_) {
    inside_ = false;
    // Models end behind a call and sometimes forget its mark.
    if (read_call(rest)) return call(rest, sink);
    return text(std::string(format_.open) + rest, sink);
  }
  const bool only_blanks = rest.find_first_not_of(kBlanks) == std::string::npos;
  if (calls_ > 0 && only_blanks) return {};
  return text(rest, sink);
}

Status ToolText::text(std::string_view piece, chat::EventSink& sink) {
  if (piece.empty()) return {};
  return sink.event(chat::TextDelta{std::string(piece)});
}

Status ToolText::call(std::string_view inside, chat::EventSink& sink) {
  auto read = read_call(inside);
  if (!read) {
    return text(fmt::format("{}{}{}", format_.open, inside, format_.close), sink);
  }
  chat::ToolCallDelta delta;
  delta.index = calls_++;
  delta.id = fmt::format("{}{}", id_seed_, delta.index);
  delta.name = std::move(read->name);
  delta.arguments = std::move(read->arguments);
  return sink.event(delta);
}

}  // namespace werk::engine::worker
