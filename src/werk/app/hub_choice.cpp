#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>

#include "werk/app/hub.hpp"
#include "werk/base/text.hpp"
#include "werk/model/model_name.hpp"
#include "werk/model/projector_choice.hpp"
#include "werk/model/split_name.hpp"

namespace werk::app {
namespace {

constexpr std::size_t kListedMax = 12;
constexpr std::array<std::string_view, 2> kPreferred = {"Q4_K_M", "Q8_0"};

std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }
std::string_view folder_of(std::string_view path) {
  return path.substr(0, path.size() - base_name(path).size());
}
bool is_gguf(std::string_view path) { return to_lower(path).ends_with(".gguf"); }
bool is_projector(std::string_view path) { return to_lower(base_name(path)).contains("mmproj"); }
// Files of the GGUF format that are no model.
bool is_by_product(std::string_view path) { return to_lower(base_name(path)).contains("imatrix"); }

// One model among the files: a single file or a whole split set.
struct Candidate {
  std::vector<HubFile> files;
  std::string quantization;
  std::uint32_t expected = 1;

  std::uint64_t size_bytes() const {
    std::uint64_t sum = 0;
    for (const HubFile& file : files) sum += file.size_bytes;
    return sum;
  }
  const std::string& path() const { return files.front().path; }
};

std::vector<Candidate> candidates_of(const std::vector<HubFile>& files) {
  std::map<std::string, Candidate> found;
  for (const HubFile& file : files) {
    if (!is_gguf(file.path) || is_projector(file.path) || is_by_product(file.path)) continue;
    const auto split = model::parse_split_name(base_name(file.path));
    const std::string key =
        split ? fmt::format("{}{}/{}", folder_of(file.path), split->prefix, split->count)
              : file.path;
    Candidate& candidate = found[key];
    candidate.quantization = quantization_of(file.path);
    candidate.expected = split ? split->count : 1;
    candidate.files.push_back(file);
  }
  std::vector<Candidate> all;
  for (auto& [key, candidate] : found) {
    std::ranges::sort(candidate.files, {}, &HubFile::path);
    all.push_back(std::move(candidate));
  }
  std::ranges::sort(all, {}, &Candidate::size_bytes);
  return all;
}

enum class ListBy : std::uint8_t { quantization, file };

std::string listed(const std::vector<Candidate>& candidates, ListBy by) {
  std::vector<std::string> items;
  for (const Candidate& one : candidates) {
    if (items.size() == kListedMax) break;
    const bool by_file = by == ListBy::file || one.quantization.empty();
    items.push_back(fmt::format("{} ({})", one_line(by_file ? one.path() : one.quantization),
                                readable_bytes(one.size_bytes())));
  }
  if (candidates.size() > items.size()) {
    items.push_back(fmt::format("and {} more", candidates.size() - items.size()));
  }
  return fmt::format("{}", fmt::join(items, ", "));
}

tl::unexpected<Error> nothing_here(const std::vector<HubFile>& files, const HubName& name) {
  std::vector<std::string> endings;
  for (const HubFile& file : files) {
    const std::string_view base = base_name(file.path);
    const std::size_t point = base.rfind('.');
    if (point == std::string_view::npos || point == 0) continue;
    std::string ending = one_line(base.substr(point));
    if (std::ranges::find(endings, ending) == endings.end()) endings.push_back(std::move(ending));
    if (endings.size() == kListedMax) break;
  }
  std::string message = fmt::format("{} holds no GGUF model but {}", name.repository,
                                    files.empty() ? "nothing at all" : "");
  if (!files.empty()) {
    message += fmt::format("{} files ({})", files.size(), fmt::join(endings, ", "));
  }
  message += "; look on the hub for a repository of this model with GGUF files, often called " +
             name.repository.substr(name.repository.find('/') + 1) + "-GGUF";
  return fail(ErrorCode::not_found, std::move(message));
}

tl::unexpected<Error> ambiguous(const std::vector<Candidate>& several, const HubName& name,
                                std::string_view why) {
  // Where every quantization stands once, it is what to type; else only the file tells.
  std::vector<std::string> kinds;
  for (const Candidate& one : several) kinds.push_back(one.quantization);
  std::ranges::sort(kinds);
  const bool unique = std::ranges::adjacent_find(kinds) == kinds.end() && !kinds.front().empty();
  const std::string example =
      unique ? fmt::format("werk pull hf:{}:{}", name.repository, several.front().quantization)
             : fmt::format("werk pull hf:{} --file {}", name.repository,
                           one_line(several.front().path()));
  return fail(ErrorCode::invalid_request,
              fmt::format("{}: {}; type for example `{}`", why,
                          listed(several, unique ? ListBy::quantization : ListBy::file), example));
}

Result<Candidate> the_one(std::vector<Candidate> suited, const HubName& name,
                          std::string_view what) {
  if (suited.size() == 1) return std::move(suited.front());
  return ambiguous(suited, name, fmt::format("several models are {}", what));
}

Result<Candidate> by_file(const std::vector<Candidate>& all, const std::vector<HubFile>& files,
                          const HubName& name, std::string_view wanted) {
  std::vector<Candidate> exact;
  std::vector<Candidate> ending;
  for (const Candidate& one : all) {
    const auto is = [&](const HubFile& file) { return file.path == wanted; };
    const auto ends = [&](const HubFile& file) { return file.path.ends_with(wanted); };
    if (std::ranges::any_of(one.files, is)) exact.push_back(one);
    if (std::ranges::any_of(one.files, ends)) ending.push_back(one);
  }
  if (!exact.empty()) return exact.front();
  if (!ending.empty()) return the_one(std::move(ending), name, "called so");
  const auto is_there = [&](const HubFile& file) { return file.path == wanted; };
  if (std::ranges::any_of(files, is_there)) {
    return fail(ErrorCode::invalid_request,
                fmt::format("{} is no model by itself; a projector comes with its model. There is: "
                            "{}",
                            one_line(wanted), listed(all, ListBy::file)));
  }
  std::vector<std::string> paths;
  for (const Candidate& one : all) paths.push_back(one.path());
  const auto near = near_names(wanted, paths);
  return fail(ErrorCode::not_found,
              fmt::format("{} has no file {}; {}: {}", name.repository, one_line(wanted),
                          near.empty() ? "there is" : "did you mean",
                          near.empty() ? listed(all, ListBy::file)
                                       : one_line(fmt::format("{}", fmt::join(near, ", ")))));
}

std::vector<Candidate> of_kind(const std::vector<Candidate>& all, std::string_view kind) {
  std::vector<Candidate> suited;
  for (const Candidate& one : all) {
    if (one.quantization == kind) suited.push_back(one);
  }
  if (!suited.empty()) return suited;
  for (const Candidate& one : all) {
    if (one.quantization == "UD-" + std::string(kind)) suited.push_back(one);
  }
  return suited;
}

Result<Candidate> by_quantization(const std::vector<Candidate>& all, const HubName& name) {
  if (!name.quantization.empty()) {
    std::vector<Candidate> suited = of_kind(all, upper_case(name.quantization));
    if (!suited.empty()) return the_one(std::move(suited), name, name.quantization);
    return ambiguous(all, name,
                     fmt::format("{} has no {}; there is", name.repository, name.quantization));
  }
  if (all.size() == 1) return all.front();
  for (const std::string_view kind : kPreferred) {
    std::vector<Candidate> suited = of_kind(all, kind);
    if (!suited.empty()) return the_one(std::move(suited), name, kind);
  }
  return ambiguous(all, name, fmt::format("{} holds several models", name.repository));
}

// Of the model's folder, else of the repository's root; F16 first, as import prefers it.
std::optional<HubFile> projector_for(const std::vector<HubFile>& files, std::string_view weights) {
  const auto best_in = [&](std::string_view folder) {
    std::optional<HubFile> best;
    int best_rank = 0;
    for (const HubFile& file : files) {
      if (!is_gguf(file.path) || !is_projector(file.path) || folder_of(file.path) != folder) {
        continue;
      }
      const std::string kind = quantization_of(file.path);
      const int rank = kind == "F16" || kind == "FP16" ? 0 : kind == "BF16" ? 1 : 2;
      if (best && (rank > best_rank || (rank == best_rank && file.path > best->path))) continue;
      best = file;
      best_rank = rank;
    }
    return best;
  };
  std::optional<HubFile> found = best_in(folder_of(weights));
  return found ? found : best_in("");
}

}  // namespace

std::string upper_case(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
  });
  return out;
}

std::string quantization_of(std::string_view path) {
  std::string kind = model::part_name(model::model_stem(base_name(path))).quantization;
  if (!kind.empty()) return kind;
  std::string_view folder = folder_of(path);
  if (!folder.empty()) folder.remove_suffix(1);
  return model::part_name(base_name(folder)).quantization;
}

Result<HubChoice> choose_files(const std::vector<HubFile>& files, const HubName& name,
                               std::string_view file) {
  const std::vector<Candidate> all = candidates_of(files);
  if (all.empty()) return nothing_here(files, name);
  Result<Candidate> chosen =
      file.empty() ? by_quantization(all, name) : by_file(all, files, name, file);
  if (!chosen) return pass_on(chosen);
  if (chosen->files.size() != chosen->expected) {
    return fail(ErrorCode::model_unusable,
                fmt::format("of the {} files that {} is split into {} holds only {}; ask its owner "
                            "or choose another: {}",
                            chosen->expected, one_line(chosen->path()), name.repository,
                            chosen->files.size(), listed(all, ListBy::file)));
  }
  HubChoice choice;
  choice.quantization = chosen->quantization;
  choice.only_of_its_kind =
      std::ranges::count(all, chosen->quantization, &Candidate::quantization) == 1;
  choice.projector = projector_for(files, chosen->path());
  choice.weights = std::move(chosen->files);
  return choice;
}

std::uint64_t total_bytes(const HubChoice& choice) {
  std::uint64_t sum = choice.projector ? choice.projector->size_bytes : 0;
  for (const HubFile& file : choice.weights) sum += file.size_bytes;
  return sum;
}

std::string hub_model_id(std::string_view repository, const HubChoice& choice) {
  const std::string_view path = choice.weights.front().path;
  std::string what = choice.quantization;
  if (!choice.only_of_its_kind) what = model::model_stem(base_name(path));
  return model::tidied_model_id(what.empty() ? std::string(repository)
                                             : fmt::format("{}:{}", repository, what));
}

std::string local_name(const HubFile& file) { return std::string(base_name(file.path)); }

}  // namespace werk::app
