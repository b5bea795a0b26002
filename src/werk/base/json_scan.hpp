// An incremental, validating JSON scanner without a tree. Bytes come in any pieces; it checks the
// grammar of RFC 8259, UTF-8 and the depth of nesting, and notes where the members of the top-level
// object stand, so that a body can be edited in place. It keeps no bytes apart from the keys of the
// top level, and its memory is bounded by its limits. A plain value without threads; the caller
// owns it. What is wrong is told as invalid_request with the offset and what was expected there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "werk/base/result.hpp"

namespace werk {

enum class JsonKind : std::uint8_t { object, array, string, number, boolean, null };

// "an object", "a string", ...: for messages.
std::string_view name_of(JsonKind kind);

// Offsets of bytes, counted from the first byte of the whole text.
struct ByteRange {
  std::size_t begin = 0;
  std::size_t end = 0;

  std::size_t size() const { return end - begin; }
  std::string_view in(std::string_view text) const { return text.substr(begin, end - begin); }
  bool operator==(const ByteRange&) const = default;
};

// A member of the top-level object: the decoded name, the name's range with its quotes, the value's
// range without blanks. A name of more than kJsonKeyBytesMax bytes as written is not kept (`key` is
// empty, `key_kept` false).
struct JsonMember {
  std::string key;
  bool key_kept = true;
  JsonKind kind = JsonKind::null;
  ByteRange name;
  ByteRange value;
};

inline constexpr std::size_t kJsonKeyBytesMax = 384;

// Whether the members of a top-level object are noted, or the text is only checked.
enum class JsonNotes : std::uint8_t { members, nothing };

struct JsonScanLimits {
  std::size_t depth_max = 256;     // containers inside one another
  std::size_t members_max = 4096;  // of the top-level object, where they are noted
  JsonNotes notes = JsonNotes::members;
};

class JsonScanner {
 public:
  // A member of the top level whose name is in `unique` may come only once. The names (at most 64)
  // must outlive the scanner. Lone surrogates in escapes (\ud800) are valid JSON and are let
  // through; raw bytes must be UTF-8.
  explicit JsonScanner(JsonScanLimits limits = {}, std::span<const std::string_view> unique = {});

  // The next bytes. After a failure every further call fails the same way.
  Status feed(std::string_view piece);
  // No more bytes come: fails unless exactly one whole value was read.
  Status finish();
  // Ready for another text, with the same limits; keeps its buffers.
  void reset();

  // Whether a whole value has been read (a top-level number ends only with finish()).
  bool complete() const { return state_ == State::done; }
  std::size_t bytes() const { return offset_; }
  // Of the whole text; meaningful once the first byte that is not blank was read.
  JsonKind root() const { return root_; }
  // In the order of the text. Empty if the root is not an object.
  const std::vector<JsonMember>& members() const { return members_; }
  std::vector<JsonMember> take_members() { return std::move(members_); }

 private:
  enum class State : std::uint8_t {
    value,
    first_element,
    first_key,
    key,
    colon,
    after_value,
    string,
    escape,
    hex,
    utf8,
    literal,
    minus,
    zero,
    integer,
    point,
    fraction,
    exponent,
    exponent_sign,
    exponent_digits,
    done
  };

  const char* take_tokens(const char* at, const char* end);
  const char* take_string(const char* at, const char* end);
  const char* take_utf8(const char* at, const char* end);
  bool step(char c);
  bool begin_value(char c);
  bool begin_container(char c);
  bool after_value(char c);
  bool step_key(char c);
  bool step_escape(char c);
  bool step_literal(char c);
  bool step_number(char c);
  bool number_is_whole() const;
  bool end_string();
  bool end_key();
  bool end_value(std::size_t end);
  bool close(char c);
  bool at_top() const { return stack_.size() == 1 && stack_[0] == '{'; }
  // Whether something is noted of what comes next.
  bool notes_here() const {
    const bool notes = limits_.notes == JsonNotes::members || !unique_.empty();
    return stack_.empty() || (notes && stack_.size() == 1);
  }
  bool wrong(std::string_view expected);
  bool wrong_with(Error error);
  std::string_view expected_here() const;

  JsonScanLimits limits_;
  std::span<const std::string_view> unique_;
  State state_ = State::value;
  bool in_key_ = false;
  bool noting_ = false;            // inside a name of the top level
  std::uint8_t count_ = 0;         // hex digits to come, or place in a literal
  std::uint8_t tails_ = 0;         // UTF-8 bytes to come
  unsigned char tail_low_ = 0x80;  // the range of the next of them
  unsigned char tail_high_ = 0xBF;
  std::string_view literal_;
  JsonKind kind_ = JsonKind::null;
  JsonKind root_ = JsonKind::null;
  std::size_t offset_ = 0;
  std::string stack_;  // '{' and '['
  std::string key_;    // as written, without quotes
  JsonMember member_;
  std::uint64_t seen_ = 0;  // which of unique_
  std::vector<JsonMember> members_;
  bool failed_ = false;
  Error error_;
};

}  // namespace werk
