#include "werk/http/headers.hpp"

#include <algorithm>

#include "werk/base/text.hpp"

namespace werk::http {

void Headers::add(std::string name, std::string value) {
  // Few messages have more: one allocation for all of them.
  constexpr std::size_t kUsual = 12;
  if (fields_.empty()) fields_.reserve(kUsual);
  fields_.push_back(Header{std::move(name), std::move(value)});
}

void Headers::set(std::string name, std::string value) {
  remove(name);
  add(std::move(name), std::move(value));
}

void Headers::remove(std::string_view name) {
  std::erase_if(fields_,
                [name](const Header& field) { return equals_ignoring_case(field.name, name); });
}

std::optional<std::string_view> Headers::find(std::string_view name) const {
  for (const Header& field : fields_) {
    if (field.name.size() == name.size() && equals_ignoring_case(field.name, name))
      return field.value;
  }
  return std::nullopt;
}

std::size_t Headers::count(std::string_view name) const {
  return static_cast<std::size_t>(std::count_if(
      fields_.begin(), fields_.end(),
      [name](const Header& field) { return equals_ignoring_case(field.name, name); }));
}

}  // namespace werk::http
