// JsonScanner's fast way over whole tokens; json_scan.cpp is the stepper that takes all others.
#include "werk/base/json_bytes.hpp"
#include "werk/base/json_scan.hpp"

namespace werk {
namespace {

const char* skip_digits(const char* at, const char* end) {
  while (at != end && is_digit(*at)) ++at;
  return at;
}

// The following are for tokens that lie in one piece. They yield the place behind the token, or
// null where it may go on behind `end` or isn't right: both are the stepper's, which says why.

// Without escapes, of ASCII alone. `at` stands behind the opening quote.
const char* end_of_string(const char* at, const char* end) {
  const char* const stop = find_marked<marks_of_unplain>(at, end);
  return stop != end && *stop == '"' ? stop + 1 : nullptr;
}

const char* end_of_number(const char* at, const char* end) {
  if (*at == '-') ++at;
  const char* const digits = at;
  at = skip_digits(at, end);
  if (at == digits || (*digits == '0' && at - digits > 1)) return nullptr;
  if (at != end && *at == '.') {
    const char* const fraction = ++at;
    at = skip_digits(at, end);
    if (at == fraction) return nullptr;
  }
  const bool goes_on = at == end || *at == 'e' || *at == 'E';
  return goes_on ? nullptr : at;
}

const char* end_of_literal(const char* at, const char* end) {
  const std::string_view rest(at, static_cast<std::size_t>(end - at));
  for (const std::string_view literal : {"null", "true", "false"}) {
    if (rest.starts_with(literal)) return at + literal.size();
  }
  return nullptr;
}

// Of a value that is no container.
const char* end_of_scalar(const char* at, const char* end) {
  if (*at == '"') return end_of_string(at + 1, end);
  if (*at == '-' || is_digit(*at)) return end_of_number(at, end);
  return end_of_literal(at, end);
}

}  // namespace

// Whole tokens of which nothing is noted, far faster than byte by byte. Returns where the stepper
// has to go on, which sees the same state as if it had taken them itself.
const char* JsonScanner::take_tokens(const char* at, const char* end) {
  while (true) {
    while (at != end && is_blank(*at)) ++at;
    if (at == end) return at;
    const char c = *at;
    const char* behind = at + 1;
    switch (state_) {
      case State::colon:
        if (c != ':') return at;
        state_ = State::value;
        break;
      case State::key:
      case State::first_key:
        if (c != '"') return at;
        behind = end_of_string(behind, end);
        if (behind == nullptr) return at;
        state_ = State::colon;
        break;
      case State::value:
      case State::first_element:
        if (c == '{' || c == '[') {
          if (stack_.size() >= limits_.depth_max) return at;
          stack_.push_back(c);
          state_ = c == '{' ? State::first_key : State::first_element;
          break;
        }
        behind = end_of_scalar(at, end);
        if (behind == nullptr) return at;
        state_ = State::after_value;
        break;
      case State::after_value:
        if (c == ',') {
          state_ = stack_.back() == '{' ? State::key : State::value;
          break;
        }
        if (c != (stack_.back() == '{' ? '}' : ']')) return at;
        stack_.pop_back();
        if (notes_here()) {
          stack_.push_back(c == '}' ? '{' : '[');
          return at;
        }
        break;
      default: return at;
    }
    at = behind;
  }
}

}  // namespace werk
