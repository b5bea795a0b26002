#include "werk/model/model_name.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "werk/base/text.hpp"
#include "werk/model/model_id.hpp"
#include "werk/model/split_name.hpp"

namespace werk::model {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSeparators = "-._ ";
// What stands for a whole file's name where nobody took the trouble to give it one.
constexpr std::array<std::string_view, 8> kSaysNothing = {"",        "model", "ggml-model", "ggml",
                                                          "weights", "gguf",  "unknown",    "file"};

std::string to_upper(std::string_view text) {
  std::string upper(text);
  std::transform(upper.begin(), upper.end(), upper.begin(),
                 [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
  return upper;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// "Q4_K_M", "IQ2_XXS", "TQ1_0", "BF16", "MXFP4_MOE", in upper case.
bool is_quantization(std::string_view word) {
  for (const std::string_view whole :
       {"F16", "BF16", "F32", "FP16", "FP32", "MXFP4", "MXFP4_MOE", "NVFP4"}) {
    if (word == whole) return true;
  }
  std::size_t at = 0;
  if (word.starts_with("IQ") || word.starts_with("TQ")) at = 1;
  if (word.size() < at + 3 || word[at] != 'Q' || !is_digit(word[at + 1])) return false;
  return word[at + 2] == '_';
}

bool is_digest(std::string_view text) {
  return text.size() == 64 && std::all_of(text.begin(), text.end(), [](char c) {
           return is_digit(c) || (c >= 'a' && c <= 'f');
         });
}

bool says_nothing(std::string_view base) {
  const std::string lower = to_lower(base);
  if (std::find(kSaysNothing.begin(), kSaysNothing.end(), lower) != kSaysNothing.end()) return true;
  const std::string_view rest =
      lower.starts_with("sha256-") ? std::string_view(lower).substr(7) : std::string_view(lower);
  return is_digest(rest);
}

bool holds_ignoring_case(std::string_view text, std::string_view part) {
  return to_lower(text).find(to_lower(part)) != std::string::npos;
}

// "Qwen3-8B-Instruct" from the header's parts, each once.
std::string name_in_header(const GgufInfo& info) {
  std::string name = info.basename;
  if (!name.empty()) {
    for (const std::string& part : {info.size_label, info.finetune}) {
      if (!part.empty() && !holds_ignoring_case(name, part)) name += "-" + part;
    }
  } else {
    name = info.name;
  }
  std::replace(name.begin(), name.end(), ' ', '-');
  return part_name(name).base;
}

// "ORG/REPOSITORY" at the end of "https://HOST/ORG/REPOSITORY".
std::string name_in_url(std::string_view url) {
  const std::size_t scheme = url.find("://");
  if (scheme == std::string_view::npos) return {};
  url.remove_prefix(scheme + 3);
  while (url.ends_with('/')) url.remove_suffix(1);
  const std::size_t host = url.find('/');
  if (host == std::string_view::npos) return {};
  const std::string_view path = url.substr(host + 1);
  return std::count(path.begin(), path.end(), '/') == 1 ? std::string(path) : std::string();
}

std::string folder_of(const fs::path& path) {
  const std::string folder = path.parent_path().filename().string();
  const NameParts parts = part_name(folder);
  // A folder per quantization lies below the model's own.
  if (!parts.base.empty()) return parts.base;
  return path.parent_path().parent_path().filename().string();
}

}  // namespace

NameParts part_name(std::string_view stem) {
  constexpr std::size_t kPartsMax = 2;  // "UD-" before it
  std::size_t begin = stem.find_last_of("-. ");
  begin = begin == std::string_view::npos ? 0 : begin + 1;
  std::string word = to_upper(stem.substr(begin));
  // After an underscore as well: "model_Q4_K_M", "model_bf16".
  for (std::size_t i = 1; !is_quantization(word) && i < word.size(); ++i) {
    if (word[i - 1] == '_' && is_quantization(std::string_view(word).substr(i))) {
      begin += i;
      word.erase(0, i);
    }
  }
  if (!is_quantization(word)) return {std::string(stem), {}};
  std::string_view base = stem.substr(0, begin);
  const auto trim_end = [&base] {
    while (!base.empty() && kSeparators.find(base.back()) != std::string_view::npos) {
      base.remove_suffix(1);
    }
  };
  trim_end();
  const std::string lower = to_lower(base);
  if (lower == "ud" || (lower.size() > kPartsMax && lower.ends_with("-ud"))) {
    base.remove_suffix(kPartsMax);
    trim_end();
    word.insert(0, "UD-");
  }
  return {std::string(base), std::move(word)};
}

std::string model_stem(std::string_view file_name) {
  if (const auto split = parse_split_name(file_name)) return split->prefix;
  if (to_lower(file_name).ends_with(".gguf")) file_name.remove_suffix(5);
  return std::string(file_name);
}

std::string hub_repository(const fs::path& path) {
  constexpr std::string_view kPrefix = "models--";
  for (auto part = path.begin(); part != path.end(); ++part) {
    const std::string folder = part->string();
    const auto next = std::next(part);
    if (!folder.starts_with(kPrefix) || next == path.end() || *next != "snapshots") continue;
    const std::string_view name = std::string_view(folder).substr(kPrefix.size());
    const std::size_t bar = name.find("--");
    if (bar == std::string_view::npos) return std::string(name);
    return fmt::format("{}/{}", name.substr(0, bar), name.substr(bar + 2));
  }
  return {};
}

std::string folder_model_id(const std::filesystem::path& folder) {
  const std::string repository = hub_repository(folder / "config.json");
  return tidied_model_id(repository.empty() ? folder.filename().string() : repository);
}

std::string tidied_model_id(std::string_view text) {
  std::string clean = printable(text);
  std::replace_if(
      clean.begin(), clean.end(), [](char c) { return c == '\n' || c == '\t'; }, ' ');
  std::string id;
  for (std::size_t begin = 0; begin <= clean.size();) {
    const std::size_t end = std::min(clean.find('/', begin), clean.size());
    const std::string_view part = std::string_view(clean).substr(begin, end - begin);
    if (!part.empty() && part != "." && part != "..") {
      if (!id.empty()) id.push_back('/');
      id += part;
    }
    begin = end + 1;
  }
  id = std::string(trim(id));
  // No cut within a character.
  while (id.size() > kModelIdBytesMax || (!id.empty() && !is_valid_utf8(id))) id.pop_back();
  id = std::string(trim(id));
  return check_model_id(id) ? id : "model";
}

std::string default_model_id(const fs::path& path, const GgufInfo& info) {
  NameParts parts = part_name(model_stem(path.filename().string()));
  if (parts.quantization.empty() && !info.quantization.starts_with("unknown")) {
    parts.quantization = info.quantization;
  }
  std::string name = hub_repository(path);
  if (name.empty() && !says_nothing(parts.base)) name = parts.base;
  if (name.empty() || says_nothing(name)) name = name_in_header(info);
  if (name.empty()) name = name_in_url(info.repository_url);
  if (name.empty()) name = folder_of(path);
  name = tidied_model_id(name);
  const std::string whole = name + ":" + parts.quantization;
  return parts.quantization.empty() || !check_model_id(whole) ? name : whole;
}

}  // namespace werk::model
