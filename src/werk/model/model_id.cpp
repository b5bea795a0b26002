#include "werk/model/model_id.hpp"

#include <algorithm>

#include "werk/base/digest.hpp"
#include "werk/base/text.hpp"

namespace werk::model {
namespace {

constexpr std::size_t kFolderNameBytesMax = 200;  // file systems allow 255
constexpr std::size_t kKeptOfLongName = 150;
constexpr std::string_view kLongNameMark = "%~";

bool stays(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-' || c == '+' || c == '.';
}

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }

Status refuse(std::string_view reason) {
  return fail(ErrorCode::invalid_request, "The model name " + std::string(reason) + ".");
}

}  // namespace

Status check_model_id(std::string_view id) {
  if (id.empty()) return refuse("is empty");
  if (id.size() > kModelIdBytesMax) return refuse("is longer than 255 bytes");
  if (!is_valid_utf8(id)) return refuse("is not valid UTF-8");
  if (std::any_of(id.begin(), id.end(), is_control)) return refuse("holds a control character");
  if (id.front() == ' ' || id.back() == ' ') return refuse("begins or ends with a space");
  for (std::size_t begin = 0; begin <= id.size();) {
    const std::size_t end = std::min(id.find('/', begin), id.size());
    const std::string_view part = id.substr(begin, end - begin);
    if (part.empty()) return refuse("has an empty part before or after a slash");
    if (part == "." || part == "..") return refuse("has '.' or '..' as a part");
    begin = end + 1;
  }
  return {};
}

std::string folder_name(std::string_view id) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string name;
  for (const char c : id) {
    if (stays(c) && !(c == '.' && name.empty())) {
      name.push_back(c);
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    name.push_back('%');
    name.push_back(kDigits[byte >> 4U]);
    name.push_back(kDigits[byte & 0x0FU]);
  }
  if (name.size() <= kFolderNameBytesMax) return name;
  name.resize(kKeptOfLongName);
  // Half an escape at the cut would read as another one.
  const std::size_t percent = name.rfind('%');
  if (percent != std::string::npos && percent + 3 > name.size()) name.resize(percent);
  name += kLongNameMark;
  name += sha256_hex(id).substr(0, 32);
  return name;
}

std::optional<std::string> folder_id(std::string_view name) {
  std::string id;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name[i] != '%') {
      id.push_back(name[i]);
      continue;
    }
    if (i + 2 >= name.size()) return std::nullopt;
    const int high = hex_value(name[i + 1]);
    const int low = hex_value(name[i + 2]);
    if (high < 0 || low < 0) return std::nullopt;
    id.push_back(static_cast<char>(high * 16 + low));
    i += 2;
  }
  if (!check_model_id(id) || folder_name(id) != name) return std::nullopt;
  return id;
}

}  // namespace werk::model
