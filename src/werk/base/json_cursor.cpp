#include "werk/base/json_cursor.hpp"

#include <array>
#include <bit>
#include <charconv>
#include <cstring>

#include "werk/base/assert.hpp"
#include "werk/base/json_bytes.hpp"

namespace werk {
namespace {

const char* skip_blanks(const char* at, const char* end) {
  while (at != end && is_blank(*at)) ++at;
  return at;
}

// `at` stands behind an opening quote. Returns the closing quote, or `end`.
const char* closing_quote(const char* at, const char* end) {
  const char* const begin = at;
  // Most strings are shorter than a call of memchr is long.
  constexpr std::ptrdiff_t kShort = 32;
  while (end - at >= 8 && at - begin < kShort) {
    std::uint64_t word = 0;
    std::memcpy(&word, at, 8);
    const std::uint64_t stops = marks_of(word, '"') | marks_of(word, '\\');
    if (stops == 0) {
      at += 8;
      continue;
    }
    at += std::countr_zero(stops) / 8;
    if (*at == '"') return at;
    at += end - at > 1 ? 2 : 1;  // the backslash and what it escapes
  }
  while (at != end) {
    const auto* quote =
        static_cast<const char*>(std::memchr(at, '"', static_cast<std::size_t>(end - at)));
    if (quote == nullptr) return end;
    const char* slash = quote;
    while (slash != begin && slash[-1] == '\\') --slash;
    if ((quote - slash) % 2 == 0) return quote;
    at = quote + 1;
  }
  return end;
}

// What changes the depth, and the beginning of what may hold such a byte without meaning it.
constexpr std::array<bool, 256> kShapes = [] {
  std::array<bool, 256> shapes{};
  for (const unsigned char c : {'{', '}', '[', ']', '"'}) shapes[c] = true;
  return shapes;
}();

const char* skip_container(const char* at, const char* end) {
  std::size_t depth = 0;
  for (; at != end; ++at) {
    while (!kShapes[static_cast<unsigned char>(*at)]) {
      if (++at == end) return end;
    }
    switch (*at) {
      case '"':
        at = closing_quote(at + 1, end);
        if (at == end) return end;
        break;
      case '{':
      case '[': ++depth; break;
      case '}':
      case ']':
        if (--depth == 0) return at + 1;
        break;
      default: break;
    }
  }
  return end;
}

// The end of the value that begins at `at`.
const char* skip_value(const char* at, const char* end) {
  if (at == end) return end;
  if (*at == '{' || *at == '[') return skip_container(at, end);
  if (*at == '"') {
    const char* quote = closing_quote(at + 1, end);
    return quote == end ? end : quote + 1;
  }
  while (at != end && !is_blank(*at) && *at != ',' && *at != '}' && *at != ']') ++at;
  return at;
}

std::string_view view(const char* begin, const char* end) {
  return {begin, static_cast<std::size_t>(end - begin)};
}

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// The four digits after \u at `at`; -1 if they are not there.
int hex4(std::string_view text, std::size_t at) {
  if (at + 4 > text.size()) return -1;
  int value = 0;
  for (std::size_t i = at; i < at + 4; ++i) {
    const int digit = hex_value(text[i]);
    if (digit < 0) return -1;
    value = value * 16 + digit;
  }
  return value;
}

void append_utf8(std::string& out, std::uint32_t point) {
  const auto push = [&](std::uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (point < 0x80) {
    push(point);
  } else if (point < 0x800) {
    push(0xC0 | point >> 6);
    push(0x80 | (point & 0x3F));
  } else if (point < 0x10000) {
    push(0xE0 | point >> 12);
    push(0x80 | (point >> 6 & 0x3F));
    push(0x80 | (point & 0x3F));
  } else {
    push(0xF0 | point >> 18);
    push(0x80 | (point >> 12 & 0x3F));
    push(0x80 | (point >> 6 & 0x3F));
    push(0x80 | (point & 0x3F));
  }
}

// Appends what \uXXXX at `digits` means, with its pair; returns how many bytes of `text` it took
// from `digits` on.
std::size_t append_code_unit(std::string& out, std::string_view text, std::size_t digits) {
  constexpr std::uint32_t kReplacement = 0xFFFD;
  const int first = hex4(text, digits);
  if (first < 0) return 0;
  if (first < 0xD800 || first > 0xDFFF) {
    append_utf8(out, static_cast<std::uint32_t>(first));
    return 4;
  }
  if (first <= 0xDBFF && text.substr(digits + 4, 2) == "\\u") {
    const int second = hex4(text, digits + 6);
    if (second >= 0xDC00 && second <= 0xDFFF) {
      append_utf8(
          out, static_cast<std::uint32_t>(0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00)));
      return 10;
    }
  }
  append_utf8(out, kReplacement);
  return 4;
}

}  // namespace

JsonKind json_kind(std::string_view value) {
  switch (value.empty() ? 'n' : value.front()) {
    case '{': return JsonKind::object;
    case '[': return JsonKind::array;
    case '"': return JsonKind::string;
    case 't':
    case 'f': return JsonKind::boolean;
    case 'n': return JsonKind::null;
    default: return JsonKind::number;
  }
}

std::string_view trim_json(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

bool JsonMemberView::is_escaped(std::string_view key) const {
  return name.find('\\') != std::string_view::npos && unescape_json(name) == key;
}

JsonObjectCursor::JsonObjectCursor(std::string_view object)
    : at_(object.data()), end_(object.data() + object.size()) {
  at_ = !object.empty() && *at_ == '{' ? at_ + 1 : end_;
}

std::optional<JsonMemberView> JsonObjectCursor::next() {
  at_ = skip_blanks(at_, end_);
  if (at_ != end_ && *at_ == ',') at_ = skip_blanks(at_ + 1, end_);
  if (at_ == end_ || *at_ != '"') return std::nullopt;
  const char* quote = closing_quote(at_ + 1, end_);
  if (quote == end_) return std::nullopt;
  JsonMemberView member;
  member.name = view(at_ + 1, quote);
  at_ = skip_blanks(quote + 1, end_);
  if (at_ == end_ || *at_ != ':') return std::nullopt;
  at_ = skip_blanks(at_ + 1, end_);
  const char* const begin = at_;
  at_ = skip_value(at_, end_);
  if (at_ == begin) return std::nullopt;
  member.value = view(begin, at_);
  return member;
}

JsonArrayCursor::JsonArrayCursor(std::string_view array)
    : at_(array.data()), end_(array.data() + array.size()) {
  at_ = !array.empty() && *at_ == '[' ? at_ + 1 : end_;
}

std::optional<std::string_view> JsonArrayCursor::next() {
  at_ = skip_blanks(at_, end_);
  if (at_ != end_ && *at_ == ',') at_ = skip_blanks(at_ + 1, end_);
  if (at_ == end_ || *at_ == ']') return std::nullopt;
  const char* const begin = at_;
  at_ = skip_value(at_, end_);
  if (at_ == begin) return std::nullopt;
  return view(begin, at_);
}

std::optional<std::string_view> find_member(std::string_view object, std::string_view key) {
  JsonObjectCursor cursor(object);
  while (const auto member = cursor.next()) {
    if (member->is(key)) return member->value;
  }
  return std::nullopt;
}

std::string unescape_json(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::size_t slash = text.find('\\', i);
    out.append(text.substr(i, slash - i));
    if (slash == std::string_view::npos || slash + 1 == text.size()) break;
    i = slash + 1;
    switch (text[i]) {
      case 'b': out.push_back('\b'); break;
      case 'f': out.push_back('\f'); break;
      case 'n': out.push_back('\n'); break;
      case 'r': out.push_back('\r'); break;
      case 't': out.push_back('\t'); break;
      case 'u': i += append_code_unit(out, text, i + 1); break;
      default: out.push_back(text[i]);
    }
  }
  return out;
}

std::optional<std::string_view> json_string_raw(std::string_view value) {
  if (value.size() < 2 || value.front() != '"' || value.back() != '"') return std::nullopt;
  return value.substr(1, value.size() - 2);
}

std::optional<std::string> json_string(std::string_view value) {
  const auto raw = json_string_raw(value);
  if (!raw) return std::nullopt;
  return unescape_json(*raw);
}

std::optional<std::uint64_t> json_unsigned(std::string_view value) {
  std::uint64_t number = 0;
  const char* const end = value.data() + value.size();
  const auto [at, error] = std::from_chars(value.data(), end, number);
  if (error != std::errc() || at != end) return std::nullopt;
  return number;
}

bool json_is_true(std::string_view value) { return value == "true"; }

void append_json_string(std::string& out, std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  const char* at = text.data();
  const char* const end = at + text.size();
  out.push_back('"');
  while (true) {
    const char* const stop = find_marked<marks_of_escaped>(at, end);
    out.append(at, stop);
    if (stop == end) break;
    at = stop + 1;
    switch (*stop) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\b': out += "\\b"; break;
      case '\f': out += "\\f"; break;
      case '\n': out += "\\n"; break;
      case '\r': out += "\\r"; break;
      case '\t': out += "\\t"; break;
      default:
        out += "\\u00";
        out.push_back(kHex[static_cast<unsigned char>(*stop) >> 4]);
        out.push_back(kHex[static_cast<unsigned char>(*stop) & 0xFu]);
    }
  }
  out.push_back('"');
}

std::string to_json_string(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 2);
  append_json_string(out, text);
  return out;
}

ByteRange range_in(std::string_view whole, std::string_view part) {
  WERK_ASSERT(part.data() >= whole.data() &&
              part.data() + part.size() <= whole.data() + whole.size());
  const auto begin = static_cast<std::size_t>(part.data() - whole.data());
  return ByteRange{begin, begin + part.size()};
}

}  // namespace werk
