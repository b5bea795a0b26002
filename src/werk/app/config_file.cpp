#include "werk/app/config_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>

#include "werk/base/json_cursor.hpp"
#include "werk/base/text.hpp"

#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

namespace werk::app {
namespace {

constexpr std::size_t kDuplicatesMax = 50;

ConfigValue value_of(const toml::node& node);

std::uint32_t line_of(const toml::node& node) { return node.source().begin.line; }

ConfigTable table_of(const toml::table& table) {
  ConfigTable entries;
  std::vector<toml::source_position> places;
  for (const auto& [key, node] : table) {
    ConfigEntry entry;
    entry.key = std::string(key.str());
    entry.value = value_of(node);
    // Of a table that [a.b] made on the way the key alone has a place.
    const toml::source_position at =
        key.source().begin.line > 0 ? key.source().begin : node.source().begin;
    entry.line = at.line > 0 ? at.line : line_of(node);
    const auto after = std::ranges::upper_bound(places, at, [](const auto& a, const auto& b) {
      return a.line != b.line ? a.line < b.line : a.column < b.column;
    });
    entries.insert(entries.begin() + (after - places.begin()), std::move(entry));
    places.insert(after, at);
  }
  return entries;
}

ConfigValue value_of(const toml::node& node) {
  ConfigValue value;
  if (const auto* text = node.as_string()) {
    value.held = text->get();
  } else if (const auto* whole = node.as_integer()) {
    value.held = whole->get();
  } else if (const auto* number = node.as_floating_point()) {
    value.held = number->get();
  } else if (const auto* truth = node.as_boolean()) {
    value.held = truth->get();
  } else if (const auto* list = node.as_array()) {
    ConfigList items;
    for (const toml::node& item : *list) items.push_back(value_of(item));
    value.held = std::move(items);
  } else if (const auto* table = node.as_table()) {
    value.held = table_of(*table);
  } else {
    value.held = ConfigTime{};
  }
  return value;
}

// Where the line of that number (from 1) begins and ends; both at the text's end if there is none.
std::pair<std::size_t, std::size_t> line_at(std::string_view text, std::uint32_t number) {
  std::size_t begin = 0;
  for (std::uint32_t line = 1; line < number && begin < text.size(); ++line) {
    const std::size_t end = text.find('\n', begin);
    begin = end == std::string_view::npos ? text.size() : end + 1;
  }
  return {begin, std::min(text.find('\n', begin), text.size())};
}

// Takes a line out that gives a key a second time, so that reading can go on behind it.
bool blank_duplicate(std::string& text, const toml::parse_error& error) {
  if (error.description().find("redefine") == std::string_view::npos) return false;
  const auto [begin, end] = line_at(text, error.source().begin.line);
  const std::string_view line = trim(std::string_view(text).substr(begin, end - begin));
  if (line.empty() || line.starts_with('[') || line.find('=') == std::string_view::npos)
    return false;
  std::fill(text.begin() + static_cast<std::ptrdiff_t>(begin),
            text.begin() + static_cast<std::ptrdiff_t>(end), ' ');
  return true;
}

// A key of very many parts would nest tables deeper than they can be walked. None of a setting has
// more than four; dots in values are no matter at this number.
std::optional<Fault> too_deep(std::string_view text) {
  constexpr std::ptrdiff_t kDotsMax = 1000;
  std::uint32_t line = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    ++line;
    if (std::ranges::count(text.substr(0, end), '.') > kDotsMax)
      return Fault{line, fmt::format("this line has more than {} dots", kDotsMax)};
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return std::nullopt;
}

Fault fault_of(std::string_view text, const toml::parse_error& error) {
  const std::uint32_t line = error.source().begin.line;
  const auto [begin, end] = line_at(text, line);
  const std::string_view words = trim(text.substr(begin, end - begin));
  if (error.description().find("redefine") != std::string_view::npos) {
    const std::string_view name = trim(words.substr(0, words.find('=')));
    return {line, fmt::format("{} is given twice; one of the two must go",
                              words.starts_with('[') ? printable(words) : printable(name))};
  }
  return {line, fmt::format("this is no TOML: {}", printable(error.description()))};
}

void append_json(std::string& out, const ConfigValue& value) {
  if (const auto* text = std::get_if<std::string>(&value.held)) {
    append_json_string(out, *text);
  } else if (const auto* whole = std::get_if<std::int64_t>(&value.held)) {
    out += fmt::to_string(*whole);
  } else if (const auto* number = std::get_if<double>(&value.held)) {
    out += std::isfinite(*number) ? fmt::format("{}", *number) : "null";
  } else if (const auto* truth = std::get_if<bool>(&value.held)) {
    out += *truth ? "true" : "false";
  } else if (const auto* list = std::get_if<ConfigList>(&value.held)) {
    out.push_back('[');
    for (const ConfigValue& item : *list) {
      if (out.back() != '[') out.push_back(',');
      append_json(out, item);
    }
    out.push_back(']');
  } else if (const auto* table = std::get_if<ConfigTable>(&value.held)) {
    out.push_back('{');
    for (const ConfigEntry& entry : *table) {
      if (out.back() != '{') out.push_back(',');
      append_json_string(out, entry.key);
      out.push_back(':');
      append_json(out, entry.value);
    }
    out.push_back('}');
  } else {
    out += "null";
  }
}

}  // namespace

std::string ConfigFile::at(std::uint32_t line) const {
  const std::string name =
      place == Place::home ? std::filesystem::path(path).filename().string() : path;
  return line == 0 ? name : fmt::format("{}:{}", name, line);
}

ConfigFile parse_config(std::string text, std::string path) {
  ConfigFile file;
  file.path = std::move(path);
  if (auto fault = too_deep(text)) {
    file.faults.push_back(std::move(*fault));
    return file;
  }
  for (;;) {
    const toml::parse_result parsed = toml::parse(text);
    if (parsed) {
      file.top = table_of(parsed.table());
      return file;
    }
    file.faults.push_back(fault_of(text, parsed.error()));
    if (file.faults.size() >= kDuplicatesMax || !blank_duplicate(text, parsed.error())) return file;
  }
}

Result<ConfigFile> read_config(const std::filesystem::path& path) {
  std::error_code error;
  const std::uintmax_t size_bytes = std::filesystem::file_size(path, error);
  if (error) {
    return fail(ErrorCode::not_found, fmt::format("the settings file {} can't be read: {}",
                                                  path.string(), error.message()));
  }
  if (size_bytes > kConfigBytesMax) {
    return fail(ErrorCode::invalid_request,
                fmt::format("the settings file {} is larger than {}", path.string(),
                            readable_bytes(kConfigBytesMax)));
  }
  std::ifstream stream(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  if (!stream.is_open() || stream.bad()) {
    return fail(ErrorCode::invalid_request, fmt::format("the settings file {} can't be read: {}",
                                                        path.string(), std::strerror(errno)));
  }
  const std::filesystem::path whole = std::filesystem::absolute(path, error);
  return parse_config(std::move(text), error ? path.string() : whole.lexically_normal().string());
}

std::string_view kind_of(const ConfigValue& value) {
  constexpr std::string_view kKinds[] = {"a string", "a whole number", "a number", "true or false",
                                         "a time",   "a list",         "a table"};
  return kKinds[value.held.index()];
}

std::string json_of(const ConfigValue& value) {
  std::string out;
  append_json(out, value);
  return out;
}

}  // namespace werk::app
