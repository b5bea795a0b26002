#include "werk/model/import_plan.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>

#include "werk/base/text.hpp"
#include "werk/model/engine_folder.hpp"
#include "werk/model/projector_choice.hpp"
#include "werk/model/split_name.hpp"

namespace werk::model {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kNsOfSecond = 1'000'000'000;

// A name that may stand in a manifest and below `files/`.
bool is_plain_name(const std::string& name) {
  const auto is_control = [](unsigned char c) { return c < 0x20 || c == 0x7F; };
  return is_valid_utf8(name) && std::none_of(name.begin(), name.end(), is_control);
}

tl::unexpected<Error> unusable(const fs::path& path, std::string_view reason) {
  return fail(ErrorCode::model_unusable, fmt::format("{}: {}", path.string(), reason));
}

Status check_purpose(const fs::path& path, const GgufInfo& info) {
  const std::string_view reason = no_model_because(info.purpose);
  return reason.empty() ? Status() : unusable(path, reason);
}

Result<PlannedFile> planned(FileRole role, const fs::path& path) {
  struct stat facts {};
  if (::stat(path.c_str(), &facts) != 0) {
    return fail(ErrorCode::io, fmt::format("{} vanished while it was looked at.", path.string()));
  }
  if (!is_plain_name(path.string())) {
    return fail(ErrorCode::invalid_request,
                fmt::format("The path {} is not valid UTF-8 or holds a control character; rename "
                            "it.",
                            printable(path.string())));
  }
  return PlannedFile{role, path, path.filename().string(),
                     static_cast<std::uint64_t>(facts.st_size),
                     facts.st_mtim.tv_sec * kNsOfSecond + facts.st_mtim.tv_nsec};
}

Status add_file(ImportPlan& plan, FileRole role, const fs::path& path) {
  Result<PlannedFile> file = planned(role, path);
  if (!file) return pass_on(file);
  const auto has_name = [&](const std::string& name) {
    return std::any_of(plan.files.begin(), plan.files.end(),
                       [&](const PlannedFile& other) { return other.name == name; });
  };
  while (has_name(file->name)) file->name = "mmproj-" + file->name;
  plan.files.push_back(std::move(*file));
  return {};
}

// One file of a split set: there, whole, and of the same set.
Result<GgufInfo> read_split(const fs::path& path, std::uint32_t number, std::uint32_t count) {
  Result<GgufInfo> info = read_header(path);
  if (!info && info.error().code == ErrorCode::not_found) {
    return unusable(path, fmt::format("This file is missing: the model is split into {} files, "
                                      "and all must lie in one folder.",
                                      count));
  }
  if (info && (info->split_count != count || info->split_index + 1 != number)) {
    return unusable(path, fmt::format("By its name this is file {} of {}, by its header {} of {}.",
                                      number, count, info->split_index + 1, info->split_count));
  }
  return info;
}

Status plan_split(ImportPlan& plan, const fs::path& folder, const SplitName& name) {
  for (std::uint32_t number = 1; number <= name.count; ++number) {
    const fs::path path = folder / split_file_name(name.prefix, number, name.count);
    Result<GgufInfo> info = read_split(path, number, name.count);
    if (!info) return pass_on(info);
    if (const Status added = add_file(plan, FileRole::weights, path); !added) return added;
    if (number == 1) {
      plan.weights = std::move(*info);
      continue;
    }
    plan.weights.tensors += info->tensors;
    if (__builtin_add_overflow(plan.weights.parameters, info->parameters,
                               &plan.weights.parameters)) {
      return unusable(path, "The set has more parameters than can be counted.");
    }
  }
  return {};
}

Status plan_weights(ImportPlan& plan, const fs::path& path) {
  Result<GgufInfo> info = read_header(path);
  if (!info) return pass_on(info);
  if (info->split_count > 1) {
    const auto name = parse_split_name(path.filename().string());
    if (!name || name->count != info->split_count) {
      return unusable(path,
                      fmt::format("This is file {} of a model split into {}; such files must "
                                  "keep names like model-00001-of-{:05}.gguf.",
                                  info->split_index + 1, info->split_count, info->split_count));
    }
    const Status split = plan_split(plan, path.parent_path(), *name);
    return split ? check_purpose(path, plan.weights) : split;
  }
  if (const Status right = check_purpose(path, *info); !right) return right;
  plan.weights = std::move(*info);
  return add_file(plan, FileRole::weights, path);
}

Status add_projector(ImportPlan& plan, const fs::path& path, GgufInfo info) {
  plan.projector = std::move(info);
  return add_file(plan, FileRole::projector, path);
}

Status plan_named_projector(ImportPlan& plan, const fs::path& path) {
  Result<GgufInfo> info = read_header(path);
  if (!info) return pass_on(info);
  if (info->purpose != GgufPurpose::projector) {
    return unusable(path, "This is a model, not a projector.");
  }
  return add_projector(plan, path, std::move(*info));
}

fs::path absolute_path(const fs::path& path) {
  std::error_code error;
  fs::path result = fs::absolute(path, error);
  return error ? path : result.lexically_normal();
}

}  // namespace

Result<GgufInfo> read_header(const fs::path& path) {
  auto source = FileSource::open(path);
  if (!source) return pass_on(source);
  Result<GgufInfo> info = read_gguf(**source);
  if (info) return info;
  Error error = std::move(info.error());
  error.message = fmt::format("{}: {}", path.string(), error.message);
  return fail(std::move(error));
}

std::string_view no_model_because(GgufPurpose purpose) {
  switch (purpose) {
    case GgufPurpose::projector:
      return "This is a projector; import the model it belongs to, beside it.";
    case GgufPurpose::adapter: return "This is a LoRA adapter; it can't run by itself.";
    case GgufPurpose::vocabulary: return "The file holds a vocabulary without weights.";
    default: return {};
  }
}

Result<ImportPlan> plan_import(const fs::path& path, ProjectorRule rule,
                               const std::optional<fs::path>& projector) {
  ImportPlan plan;
  const fs::path first = absolute_path(path);
  if (is_engine_folder(first)) return plan_engine_folder(first);
  if (Status weights = plan_weights(plan, first); !weights) return pass_on(weights);
  Status rest;
  if (projector) {
    rest = plan_named_projector(plan, absolute_path(*projector));
  } else if (rule == ProjectorRule::beside && plan.weights.purpose == GgufPurpose::text) {
    auto beside = find_projector(first, plan.weights.embedding_length);
    if (beside) rest = add_projector(plan, beside->path, std::move(beside->info));
  }
  if (!rest) return pass_on(rest);
  return plan;
}

Manifest manifest_of(const ImportPlan& plan) {
  if (plan.facts) return *plan.facts;
  const GgufInfo& info = plan.weights;
  Manifest manifest;
  manifest.format = "gguf";
  manifest.name = info.name;
  manifest.architecture = info.architecture;
  manifest.quantization = info.quantization;
  manifest.parameters = info.parameters;
  manifest.training_context_tokens = info.training_context_tokens;
  manifest.shape = {info.layers,         info.embedding_length, info.heads,
                    info.kv_heads_total, info.key_length,       info.value_length};
  manifest.chat_template = look_at_chat_template(info.chat_template, info.tool_template);
  manifest.capabilities.completion = info.purpose == GgufPurpose::text;
  manifest.capabilities.chat = manifest.capabilities.completion && manifest.chat_template.present;
  manifest.capabilities.embeddings = info.purpose == GgufPurpose::embedding;
  manifest.capabilities.reranking = info.purpose == GgufPurpose::reranking;
  if (plan.projector) {
    manifest.capabilities.vision = plan.projector->reads_images;
    manifest.capabilities.audio = plan.projector->reads_sound;
  }
  manifest.licence = info.licence;
  return manifest;
}

}  // namespace werk::model
