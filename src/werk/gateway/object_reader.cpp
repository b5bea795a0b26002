#include "werk/gateway/object_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "werk/base/json_cursor.hpp"
#include "werk/base/text.hpp"

namespace werk::gateway {

tl::unexpected<Error> bad_member(std::string path, std::string message) {
  Error error{ErrorCode::invalid_request, std::move(message), Origin::client};
  error.param = std::move(path);
  return fail(std::move(error));
}

tl::unexpected<Error> bad_kind_of(std::string path, std::string_view expected,
                                  std::string_view value) {
  std::string message = value.empty() ? fmt::format("'{}' is missing", path)
                                      : fmt::format("'{}' must be {}, not {}", path, expected,
                                                    name_of(json_kind(value)));
  return bad_member(std::move(path), std::move(message));
}

tl::unexpected<Error> unsupported_member(std::string path, std::string message) {
  Error error{ErrorCode::unsupported, std::move(message), Origin::client};
  error.param = std::move(path);
  return fail(std::move(error));
}

std::string quoted_word(std::string_view word) {
  constexpr std::size_t kShown = 64;
  return fmt::format("'{}'", printable(word.substr(0, kShown)));
}

std::string element_path(std::string_view list, std::size_t index) {
  return fmt::format("{}[{}]", list, index);
}

Result<ObjectReader> ObjectReader::open(std::string_view object, std::string where,
                                        std::initializer_list<std::string_view> names) {
  if (object.empty() || json_kind(object) != JsonKind::object)
    return bad_kind_of(std::move(where), name_of(JsonKind::object), object);
  ObjectReader reader(std::move(where));
  JsonObjectCursor cursor(object);
  while (const auto member = cursor.next()) {
    const auto name = std::ranges::find_if(
        names, [&](std::string_view candidate) { return member->is(candidate); });
    if (name == names.end()) continue;
    const bool seen =
        std::ranges::any_of(reader.found_, [&](const auto& known) { return known.first == *name; });
    if (seen) {
      std::string path = reader.path(*name);
      return bad_member(path, fmt::format("the member '{}' is given twice", path));
    }
    const bool null = member->kind() == JsonKind::null;
    reader.found_.emplace_back(*name, null ? std::string_view() : member->value);
  }
  return reader;
}

std::string ObjectReader::path(std::string_view name) const {
  return where_.empty() ? std::string(name) : fmt::format("{}.{}", where_, name);
}

std::string_view ObjectReader::value(std::string_view name) const {
  const auto found =
      std::ranges::find_if(found_, [&](const auto& member) { return member.first == name; });
  return found == found_.end() ? std::string_view() : found->second;
}

Result<std::string_view> ObjectReader::value(std::string_view name, JsonKind kind) const {
  const std::string_view text = value(name);
  if (!text.empty() && json_kind(text) != kind) return bad_kind_of(path(name), name_of(kind), text);
  return text;
}

Result<std::string_view> ObjectReader::required(std::string_view name, JsonKind kind) const {
  const std::string_view text = value(name);
  if (text.empty() || json_kind(text) != kind) return bad_kind_of(path(name), name_of(kind), text);
  return text;
}

Result<std::optional<std::string>> ObjectReader::string(std::string_view name) const {
  auto text = value(name, JsonKind::string);
  if (!text) return pass_on(text);
  return json_string(*text);
}

Result<std::string> ObjectReader::required_string(std::string_view name) const {
  auto text = required(name, JsonKind::string);
  if (!text) return pass_on(text);
  return json_string(*text).value_or("");
}

Result<std::optional<bool>> ObjectReader::boolean(std::string_view name) const {
  auto text = value(name, JsonKind::boolean);
  if (!text) return pass_on(text);
  std::optional<bool> known;
  if (!text->empty()) known = json_is_true(*text);
  return known;
}

Result<std::optional<std::uint64_t>> ObjectReader::count(std::string_view name) const {
  auto text = value(name, JsonKind::number);
  if (!text) return pass_on(text);
  auto known = json_unsigned(*text);
  if (!known && !text->empty()) {
    std::string at = path(name);
    return bad_member(at, fmt::format("'{}' must be a whole number from 0 on", at));
  }
  return known;
}

Result<std::optional<double>> ObjectReader::number(std::string_view name) const {
  auto text = value(name, JsonKind::number);
  if (!text) return pass_on(text);
  std::optional<double> known;
  if (text->empty()) return known;
  double parsed = 0;
  const char* const end = text->data() + text->size();
  const auto [stop, code] = std::from_chars(text->data(), end, parsed);
  if (code != std::errc() || stop != end || !std::isfinite(parsed)) {
    std::string at = path(name);
    return bad_member(at, fmt::format("'{}' is out of range", at));
  }
  known = parsed;
  return known;
}

}  // namespace werk::gateway
