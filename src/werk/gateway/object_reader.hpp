// Reads the members of one JSON object in place, for dialects whose requests nest deeply: which
// members matter is said once, their values come back as views, a null counts as absent, a member
// that matters and is given twice is an error, all others are left alone. Failures are
// invalid_request with the member's path as `param`. Views point into the text, which the caller
// keeps. Plain values, any thread.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "werk/base/json_scan.hpp"

namespace werk::gateway {

// The request is wrong at this member.
tl::unexpected<Error> bad_member(std::string path, std::string message);
// "'path' must be EXPECTED, not an array"; for an empty value "'path' is missing".
tl::unexpected<Error> bad_kind_of(std::string path, std::string_view expected,
                                  std::string_view value);
// Right in itself, but not what Werk can do.
tl::unexpected<Error> unsupported_member(std::string path, std::string message);
// A word of the client's, short and fit for a message.
std::string quoted_word(std::string_view word);
std::string element_path(std::string_view list, std::size_t index);

class ObjectReader {
 public:
  // `where` is the object's path, empty for the body itself; `names` must outlive the reader.
  static Result<ObjectReader> open(std::string_view object, std::string where,
                                   std::initializer_list<std::string_view> names);

  const std::string& where() const { return where_; }
  std::string path(std::string_view name) const;
  // As it stands in the text; empty if absent.
  std::string_view value(std::string_view name) const;
  // The same, failing if it is of another kind.
  Result<std::string_view> value(std::string_view name, JsonKind kind) const;
  Result<std::string_view> required(std::string_view name, JsonKind kind) const;
  // Decoded.
  Result<std::optional<std::string>> string(std::string_view name) const;
  Result<std::string> required_string(std::string_view name) const;
  Result<std::optional<bool>> boolean(std::string_view name) const;
  // A whole number from 0 on.
  Result<std::optional<std::uint64_t>> count(std::string_view name) const;
  // Any finite number.
  Result<std::optional<double>> number(std::string_view name) const;

 private:
  explicit ObjectReader(std::string where) : where_(std::move(where)) {}

  std::string where_;
  std::vector<std::pair<std::string_view, std::string_view>> found_;
};

}  // namespace werk::gateway
