// Walks over JSON text in place: the members of one object, the elements of one array, without a
// tree and without a copy. It is meant for text that a JsonScanner has accepted; on other text it
// stops early or yields nonsense, but it never reads outside of the text and always ends. Views
// point into the text, which the caller keeps alive. Plain values, any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "werk/base/json_scan.hpp"

namespace werk {

// The kind of a value whose text begins with this byte (without blanks before it).
JsonKind json_kind(std::string_view value);
std::string_view trim_json(std::string_view text);

// A member as it stands in the text.
struct JsonMemberView {
  std::string_view name;   // as written, between the quotes
  std::string_view value;  // without blanks around it

  // Compares the decoded name. Asked for every member of every event of a stream: most are told
  // apart by their length or first byte.
  bool is(std::string_view key) const {
    if (name.size() <= key.size()) return name == key;
    const bool may_be = key.empty() || name.front() == key.front() || name.front() == '\\';
    return may_be && is_escaped(key);
  }
  JsonKind kind() const { return json_kind(value); }

 private:
  bool is_escaped(std::string_view key) const;
};

class JsonObjectCursor {
 public:
  // `object` begins with '{'; anything else has no members.
  explicit JsonObjectCursor(std::string_view object);
  // The next member; none at the end.
  std::optional<JsonMemberView> next();

 private:
  const char* at_;
  const char* end_;
};

class JsonArrayCursor {
 public:
  // `array` begins with '['; anything else has no elements.
  explicit JsonArrayCursor(std::string_view array);
  std::optional<std::string_view> next();

 private:
  const char* at_;
  const char* end_;
};

// The first member of that name; none if there is none or `object` is no object.
std::optional<std::string_view> find_member(std::string_view object, std::string_view key);

// What a string's text between its quotes means, in UTF-8. A lone surrogate becomes U+FFFD.
std::string unescape_json(std::string_view between_quotes);
// The same of a whole value with its quotes; none if it is no string.
std::optional<std::string> json_string(std::string_view value);
// The bytes between the quotes, as written; none if it is no string.
std::optional<std::string_view> json_string_raw(std::string_view value);
std::optional<std::uint64_t> json_unsigned(std::string_view value);
bool json_is_true(std::string_view value);

// Appends `text` (UTF-8) as a JSON string with its quotes; only what must be escaped is.
void append_json_string(std::string& out, std::string_view text);
std::string to_json_string(std::string_view text);

// Where `part`, a view into `whole`, stands in it.
ByteRange range_in(std::string_view whole, std::string_view part);

}  // namespace werk
