#include "werk/model/projector_choice.hpp"

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "werk/base/text.hpp"
#include "werk/model/model_name.hpp"

namespace werk::model {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMark = "mmproj";
constexpr std::size_t kFilesMax = 10'000;

// Letters and digits alone, so that "Gemma 3-4B" and "gemma-3_4b" are the same.
std::string plain(std::string_view text) {
  std::string out;
  for (const char c : to_lower(text)) {
    if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c & 0x80) != 0) out.push_back(c);
  }
  return out;
}

std::string model_in(std::string_view file_name) {
  return plain(part_name(model_stem(file_name)).base);
}

// The model that a projector's name speaks of: "gemma34b" of "mmproj-gemma-3-4b-f16.gguf".
std::string subject_of(std::string_view file_name) {
  std::string subject = model_in(file_name);
  if (const std::size_t at = subject.find(kMark); at != std::string::npos) {
    subject.erase(at, kMark.size());
  }
  return subject == "model" ? std::string() : subject;
}

bool speaks_of(std::string_view subject, std::string_view model) {
  if (subject.empty() || model.empty()) return false;
  return model.find(subject) != std::string_view::npos ||
         subject.find(model) != std::string_view::npos;
}

struct Folder {
  std::vector<fs::path> projectors;
  std::vector<std::string> models;  // what model_in() gives
};

Folder look_into(const fs::path& folder) {
  Folder found;
  std::error_code error;
  std::size_t left = kFilesMax;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end && left > 0;
       entry.increment(error), --left) {
    const std::string name = entry->path().filename().string();
    if (!to_lower(name).ends_with(".gguf")) continue;
    if (is_projector_name(name)) {
      found.projectors.push_back(entry->path());
    } else {
      found.models.push_back(model_in(name));
    }
  }
  return found;
}

enum NameRank : std::uint8_t { named_after_it, named_after_none, named_after_something };

std::optional<FoundProjector> find_in(const fs::path& folder, std::string_view model,
                                      std::uint64_t embedding_length) {
  using Suited = std::tuple<NameRank, int, fs::path, GgufInfo>;
  const Folder found = look_into(folder);
  std::vector<Suited> suited;
  for (const fs::path& path : found.projectors) {
    const std::string subject = subject_of(path.filename().string());
    const NameRank rank = speaks_of(subject, model) ? named_after_it
                          : subject.empty()         ? named_after_none
                                                    : named_after_something;
    const bool anothers =
        rank == named_after_something &&
        std::any_of(found.models.begin(), found.models.end(),
                    [&](const std::string& other) { return speaks_of(subject, other); });
    if (anothers) continue;
    // What was not named must not hinder: a broken or foreign file beside the model is none of its
    // own.
    Result<GgufInfo> info = read_gguf_file(path);
    if (!info || info->purpose != GgufPurpose::projector) continue;
    if (info->projection_length != embedding_length) continue;
    const int quality = info->quantization == "F16" ? 0 : info->quantization == "BF16" ? 1 : 2;
    suited.emplace_back(rank, quality, path, std::move(*info));
  }
  if (suited.empty()) return std::nullopt;
  const auto order = [](const Suited& one) {
    return std::tie(std::get<0>(one), std::get<1>(one), std::get<2>(one));
  };
  const auto best =
      std::min_element(suited.begin(), suited.end(),
                       [&](const Suited& a, const Suited& b) { return order(a) < order(b); });
  return FoundProjector{std::get<2>(*best), std::move(std::get<3>(*best))};
}

}  // namespace

bool is_projector_name(std::string_view file_name) {
  return to_lower(file_name).find(kMark) != std::string::npos;
}

std::optional<FoundProjector> find_projector(const fs::path& weights,
                                             std::uint64_t embedding_length) {
  const fs::path folder = weights.parent_path();
  const std::string model = model_in(weights.filename().string());
  if (auto found = find_in(folder, model, embedding_length)) return found;
  const NameParts parts = part_name(folder.filename().string());
  if (!parts.base.empty() || parts.quantization.empty()) return std::nullopt;
  return find_in(folder.parent_path(), model, embedding_length);
}

}  // namespace werk::model
