#include "werk/base/json_scan.hpp"

#include <fmt/format.h>

#include <array>

#include "werk/base/assert.hpp"
#include "werk/base/json_bytes.hpp"
#include "werk/base/json_cursor.hpp"

namespace werk {
namespace {

bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

}  // namespace

std::string_view name_of(JsonKind kind) {
  constexpr std::array<std::string_view, 6> kNames = {"an object", "an array",      "a string",
                                                      "a number",  "true or false", "null"};
  return kNames[static_cast<std::size_t>(kind)];
}

JsonScanner::JsonScanner(JsonScanLimits limits, std::span<const std::string_view> unique)
    : limits_(limits), unique_(unique) {
  WERK_ASSERT(unique.size() <= 64);
}

void JsonScanner::reset() {
  state_ = State::value;
  in_key_ = noting_ = failed_ = false;
  root_ = JsonKind::null;
  offset_ = 0;
  stack_.clear();
  seen_ = 0;
  members_.clear();
}

Status JsonScanner::feed(std::string_view piece) {
  if (failed_) return fail(error_);
  const char* at = piece.data();
  const char* const end = at + piece.size();
  while (at != end) {
    if (state_ <= State::after_value && !notes_here()) {
      const char* const next = take_tokens(at, end);
      offset_ += static_cast<std::size_t>(next - at);
      at = next;
      if (at == end) break;
    }
    if (state_ == State::string || state_ == State::utf8) {
      const char* next = state_ == State::string ? take_string(at, end) : take_utf8(at, end);
      if (failed_) return fail(error_);
      at = next;
      continue;
    }
    if (!step(*at)) return fail(error_);
    ++at;
    ++offset_;
  }
  return {};
}

Status JsonScanner::finish() {
  if (failed_) return fail(error_);
  if (number_is_whole() && stack_.empty()) end_value(offset_);
  if (state_ == State::done) return {};
  if (state_ == State::value && stack_.empty()) {
    wrong_with(Error{ErrorCode::invalid_request, "the text is empty where JSON was expected",
                     Origin::client});
  } else {
    wrong_with(Error{ErrorCode::invalid_request,
                     fmt::format("the JSON ends too early, at byte {}, where {} was expected",
                                 offset_, expected_here()),
                     Origin::client});
  }
  return fail(error_);
}

const char* JsonScanner::take_string(const char* at, const char* end) {
  const char* stop = find_marked<marks_of_unplain>(at, end);
  if (noting_ && key_.size() <= kJsonKeyBytesMax) {
    key_.append(at,
                std::min<std::size_t>(static_cast<std::size_t>(stop - at), kJsonKeyBytesMax + 1));
  }
  offset_ += static_cast<std::size_t>(stop - at);
  if (stop == end) return end;
  const auto c = static_cast<unsigned char>(*stop);
  if (c >= 0x80) return take_utf8(stop, end);
  if (c == '"') {
    if (!end_string()) return stop;
  } else if (c == '\\') {
    if (noting_) key_.push_back('\\');
    state_ = State::escape;
  } else {
    wrong("a control character to be escaped");
    return stop;
  }
  ++offset_;
  return stop + 1;
}

// Runs of non-ASCII text stay in this loop; the state between pieces is (tails_, tail_low_,
// tail_high_).
const char* JsonScanner::take_utf8(const char* at, const char* end) {
  while (at != end) {
    const auto c = static_cast<unsigned char>(*at);
    if (tails_ == 0) {
      if (c < 0x80) break;
      tail_low_ = c == 0xE0 ? 0xA0 : c == 0xF0 ? 0x90 : 0x80;
      tail_high_ = c == 0xED ? 0x9F : c == 0xF4 ? 0x8F : 0xBF;
      tails_ = c >= 0xC2 && c <= 0xDF   ? 1
               : (c & 0xF0u) == 0xE0    ? 2
               : c >= 0xF0 && c <= 0xF4 ? 3
                                        : 0;
      if (tails_ == 0) {
        wrong("valid UTF-8");
        return at;
      }
    } else if (c < tail_low_ || c > tail_high_) {
      tails_ = 0;
      wrong("valid UTF-8");
      return at;
    } else {
      --tails_;
      tail_low_ = 0x80;
      tail_high_ = 0xBF;
    }
    if (noting_ && key_.size() <= kJsonKeyBytesMax) key_.push_back(*at);
    ++at;
    ++offset_;
  }
  state_ = tails_ == 0 ? State::string : State::utf8;
  return at;
}

bool JsonScanner::step(char c) {
  switch (state_) {
    case State::value: return is_blank(c) || begin_value(c);
    case State::first_element: return is_blank(c) || (c == ']' ? close(c) : begin_value(c));
    case State::first_key:
    case State::key: return is_blank(c) || step_key(c);
    case State::colon:
      if (is_blank(c)) return true;
      if (c != ':') return wrong(expected_here());
      state_ = State::value;
      return true;
    case State::after_value: return is_blank(c) || after_value(c);
    case State::done: return is_blank(c) || wrong(expected_here());
    case State::escape:
    case State::hex: return step_escape(c);
    case State::literal: return step_literal(c);
    case State::string:
    case State::utf8: return true;  // feed() takes these
    default: return step_number(c);
  }
}

bool JsonScanner::begin_value(char c) {
  if (at_top()) member_.value.begin = offset_;
  switch (c) {
    case '{':
    case '[': return begin_container(c);
    case '"':
      kind_ = JsonKind::string;
      state_ = State::string;
      in_key_ = false;
      break;
    case 't':
    case 'f':
    case 'n':
      kind_ = c == 'n' ? JsonKind::null : JsonKind::boolean;
      literal_ = c == 't' ? "true" : c == 'f' ? "false" : "null";
      count_ = 1;
      state_ = State::literal;
      break;
    case '-':
      kind_ = JsonKind::number;
      state_ = State::minus;
      break;
    default:
      if (!is_digit(c)) return wrong(expected_here());
      kind_ = JsonKind::number;
      state_ = c == '0' ? State::zero : State::integer;
  }
  if (stack_.empty()) root_ = kind_;
  if (at_top()) member_.kind = kind_;
  return true;
}

bool JsonScanner::begin_container(char c) {
  if (stack_.size() >= limits_.depth_max) {
    return wrong_with(Error{ErrorCode::invalid_request,
                            fmt::format("the JSON is nested more than {} levels deep, at byte {}",
                                        limits_.depth_max, offset_),
                            Origin::client});
  }
  const JsonKind kind = c == '{' ? JsonKind::object : JsonKind::array;
  if (stack_.empty()) root_ = kind;
  if (at_top()) member_.kind = kind;
  stack_.push_back(c);
  state_ = c == '{' ? State::first_key : State::first_element;
  return true;
}

bool JsonScanner::after_value(char c) {
  const bool in_object = stack_.back() == '{';
  if (c == ',') {
    state_ = in_object ? State::key : State::value;
    return true;
  }
  return c == (in_object ? '}' : ']') ? close(c) : wrong(expected_here());
}

bool JsonScanner::close(char c) {
  WERK_ASSERT(!stack_.empty() && (c == '}' || c == ']'));
  stack_.pop_back();
  return end_value(offset_ + 1);
}

bool JsonScanner::step_key(char c) {
  if (c == '}' && state_ == State::first_key) return close(c);
  if (c != '"') return wrong(expected_here());
  state_ = State::string;
  in_key_ = true;
  noting_ = at_top() && (limits_.notes == JsonNotes::members || !unique_.empty());
  if (noting_) {
    key_.clear();
    member_.name.begin = offset_;
  }
  return true;
}

bool JsonScanner::end_string() {
  if (!in_key_) return end_value(offset_ + 1);
  in_key_ = false;
  state_ = State::colon;
  return !noting_ || end_key();
}

bool JsonScanner::end_key() {
  noting_ = false;
  member_.name.end = offset_ + 1;
  member_.key_kept = key_.size() <= kJsonKeyBytesMax;
  if (!member_.key_kept) {
    member_.key.clear();
  } else if (key_.find('\\') == std::string::npos) {
    member_.key = key_;
  } else {
    member_.key = unescape_json(key_);
  }
  for (std::size_t i = 0; i < unique_.size(); ++i) {
    if (member_.key != unique_[i]) continue;
    if ((seen_ >> i & 1u) != 0) {
      Error error{ErrorCode::invalid_request,
                  fmt::format("the member '{}' is given twice", member_.key), Origin::client};
      error.param = member_.key;
      return wrong_with(std::move(error));
    }
    seen_ |= std::uint64_t{1} << i;
  }
  return true;
}

bool JsonScanner::end_value(std::size_t end) {
  if (stack_.empty()) {
    state_ = State::done;
    return true;
  }
  state_ = State::after_value;
  if (!at_top() || limits_.notes == JsonNotes::nothing) return true;
  if (members_.size() >= limits_.members_max) {
    return wrong_with(Error{ErrorCode::invalid_request,
                            fmt::format("the object has more than {} members", limits_.members_max),
                            Origin::client});
  }
  member_.value.end = end;
  constexpr std::size_t kUsual = 12;
  if (members_.empty()) members_.reserve(kUsual);
  members_.push_back(member_);
  return true;
}

bool JsonScanner::step_escape(char c) {
  if (state_ == State::escape) {
    if (c == 'u') {
      state_ = State::hex;
      count_ = 4;
    } else if (std::string_view("\"\\/bfnrt").find(c) != std::string_view::npos) {
      state_ = State::string;
    } else {
      return wrong(expected_here());
    }
  } else {
    if (!is_hex(c)) return wrong(expected_here());
    if (--count_ == 0) state_ = State::string;
  }
  if (noting_) key_.push_back(c);
  return true;
}

bool JsonScanner::step_literal(char c) {
  if (c != literal_[count_]) return wrong(expected_here());
  return ++count_ < literal_.size() || end_value(offset_ + 1);
}

bool JsonScanner::number_is_whole() const {
  return state_ == State::zero || state_ == State::integer || state_ == State::fraction ||
         state_ == State::exponent_digits;
}

bool JsonScanner::step_number(char c) {
  switch (state_) {
    case State::minus:
      if (!is_digit(c)) return wrong(expected_here());
      state_ = c == '0' ? State::zero : State::integer;
      return true;
    case State::integer:
    case State::fraction:
    case State::exponent_digits:
      if (is_digit(c)) return true;
      break;
    case State::point:
      if (!is_digit(c)) return wrong(expected_here());
      state_ = State::fraction;
      return true;
    case State::exponent:
      if (c == '+' || c == '-') {
        state_ = State::exponent_sign;
        return true;
      }
      [[fallthrough]];
    case State::exponent_sign:
      if (!is_digit(c)) return wrong(expected_here());
      state_ = State::exponent_digits;
      return true;
    default: break;
  }
  if (c == '.' && (state_ == State::zero || state_ == State::integer)) {
    state_ = State::point;
    return true;
  }
  if ((c == 'e' || c == 'E') && state_ != State::exponent_digits) {
    state_ = State::exponent;
    return true;
  }
  // The number ended before this byte, which belongs to what stands around it.
  return end_value(offset_) && step(c);
}

bool JsonScanner::wrong(std::string_view expected) {
  return wrong_with(
      Error{ErrorCode::invalid_request,
            fmt::format("not valid JSON: at byte {} {} was expected", offset_, expected),
            Origin::client});
}

bool JsonScanner::wrong_with(Error error) {
  failed_ = true;
  error_ = std::move(error);
  return false;
}

std::string_view JsonScanner::expected_here() const {
  switch (state_) {
    case State::value: return stack_.empty() ? "a JSON value" : "a value";
    case State::first_element: return "a value or ']'";
    case State::first_key: return "a name in quotes or '}'";
    case State::key: return "a name in quotes";
    case State::colon: return "':'";
    case State::after_value: return stack_.back() == '{' ? "',' or '}'" : "',' or ']'";
    case State::string: return "the end of a string";
    case State::escape: return "one of \" \\ / b f n r t u after a backslash";
    case State::hex: return "a hexadecimal digit";
    case State::utf8: return "valid UTF-8";
    case State::literal: return literal_;
    case State::done: return "nothing more";
    case State::exponent: return "a digit or a sign";
    case State::zero:
    case State::integer:
    case State::fraction:
    case State::exponent_digits:
      return stack_.empty() ? "the end" : stack_.back() == '{' ? "',' or '}'" : "',' or ']'";
    default: return "a digit";
  }
}

}  // namespace werk
