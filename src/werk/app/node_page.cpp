#include "werk/app/node_page.hpp"

namespace werk::app {

namespace json = boost::json;

namespace {

const json::value* found(const json::object& page, std::string_view member) {
  const json::value* value = page.if_contains(member);
  return value == nullptr || value->is_null() ? nullptr : value;
}

}  // namespace

std::string text_in(const json::object& page, std::string_view member) {
  const json::value* value = found(page, member);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : std::string();
}

std::optional<double> figure_in(const json::object& page, std::string_view member) {
  const json::value* value = found(page, member);
  if (value == nullptr || !value->is_number()) return std::nullopt;
  const auto figure = value->to_number<double>();
  return figure < 0 ? std::nullopt : std::optional(figure);
}

std::optional<std::uint64_t> count_in(const json::object& page, std::string_view member) {
  const json::value* value = found(page, member);
  if (value == nullptr || !value->is_number()) return std::nullopt;
  boost::system::error_code error;
  const auto count = value->to_number<std::uint64_t>(error);
  return error ? std::nullopt : std::optional(count);
}

std::optional<bool> truth_in(const json::object& page, std::string_view member) {
  const json::value* value = found(page, member);
  if (value == nullptr || !value->is_bool()) return std::nullopt;
  return value->get_bool();
}

const json::object& object_in(const json::object& page, std::string_view member) {
  static const json::object none;
  const json::value* value = found(page, member);
  return value != nullptr && value->is_object() ? value->get_object() : none;
}

const json::array& array_in(const json::object& page, std::string_view member) {
  static const json::array none;
  const json::value* value = found(page, member);
  return value != nullptr && value->is_array() ? value->get_array() : none;
}

}  // namespace werk::app
