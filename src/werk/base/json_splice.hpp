// Edits to JSON text as a list of (range, replacement), applied in one pass; everything else stays
// byte for byte, so key order, numbers and spelling survive. JsonSplice holds the edits of one
// text; JsonObjectEditor turns "set, remove, add a member" of one object into such edits, with the
// right commas. Both borrow the text, which must outlive them, and expect it to be valid JSON.
// Equal calls on equal texts give equal bytes. Plain values, any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "werk/base/json_scan.hpp"

namespace werk {

class JsonSplice {
 public:
  explicit JsonSplice(std::string_view text) : text_(text) {}

  std::string_view text() const { return text_; }
  // Edits may come in any order but may not overlap. Insertions at one place stand in the order of
  // the calls, behind an edit that ends there and before one that begins there.
  void replace(ByteRange range, std::string replacement);
  void insert(std::size_t at, std::string text) { replace(ByteRange{at, at}, std::move(text)); }
  bool empty() const { return edits_.empty(); }
  std::string apply() const;

 private:
  struct Edit {
    ByteRange range;
    std::string replacement;
  };

  std::string_view text_;
  std::vector<Edit> edits_;
};

class JsonObjectEditor {
 public:
  // `object` is a view into the splice's text, from '{' to '}'. The edits reach the splice with
  // commit().
  JsonObjectEditor(JsonSplice& splice, std::string_view object);

  // The value of the first member of that name as the text has it; empty if there is none or it was
  // removed.
  std::string_view value(std::string_view key) const;
  // Replaces the value of the first member of that name, or adds the member at the end. `json` is a
  // whole value.
  void set(std::string_view key, std::string json);
  // Removes every member of that name, each with one comma.
  void remove(std::string_view key);
  // The name alone, as in "reasoning" to "reasoning_content"; nothing happens if there is none.
  void rename(std::string_view key, std::string_view new_key);
  // Removes the members whose value is null, except those that were set and that of the name
  // `kept`.
  void remove_nulls(std::string_view kept = {});
  // Counts the members that stay, added ones included.
  std::size_t size() const;
  void commit();

 private:
  struct Place {
    ByteRange name;  // with its quotes
    ByteRange value;
    bool removed = false;
    std::optional<std::string> new_name;  // with its quotes
    std::optional<std::string> new_value;
  };
  std::string_view name_at(const Place& place) const;
  bool is(const Place& place, std::string_view key) const;

  JsonSplice& splice_;
  ByteRange object_;
  std::vector<Place> places_;
  std::vector<std::pair<std::string, std::string>> added_;
};

}  // namespace werk
