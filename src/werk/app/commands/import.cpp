#include "werk/app/commands/import.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <set>

#include "werk/app/commands/import_scan.hpp"
#include "werk/base/text.hpp"
#include "werk/model/already_installed.hpp"
#include "werk/model/engine_folder.hpp"
#include "werk/model/model_folder.hpp"
#include "werk/model/model_id.hpp"
#include "werk/model/model_name.hpp"
#include "werk/process/program.hpp"

namespace werk::app {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kNamedAtMost = 5;

int usage(std::string_view message) {
  fmt::print(stderr, "werk: {}\n(werk import --help shows what there is)\n", message);
  return kUsageStatus;
}

model::ImportRequest request_of(const CommandLine& line, const fs::path& path) {
  model::ImportRequest request;
  request.path = path;
  request.id = line.name;
  request.aliases = line.aliases;
  request.mode = line.link ? model::ImportMode::link : model::ImportMode::copy;
  request.source = "imported from " + path.filename().string();
  if (!line.mmproj.empty()) request.projector = line.mmproj;
  return request;
}

// What a folder's message says of a file: its path as seen from the folder.
std::string shown(const fs::path& path, const fs::path& folder) {
  const fs::path relative = path.lexically_relative(folder);
  return printable((relative.empty() ? path : relative).string());
}

// The one model of a folder; an error that names what is there if there is another number.
Result<fs::path> only_model(const fs::path& folder) {
  auto found = model::find_models(folder);
  if (!found) return pass_on(found);
  if (found->models.size() == 1) return found->models.front().path;
  const std::string name = printable(folder.string());
  if (!found->models.empty()) {
    std::vector<std::string> names;
    for (const auto& one : found->models) names.push_back(shown(one.path, folder));
    const std::size_t more = names.size() - std::min(names.size(), kNamedAtMost);
    names.resize(names.size() - more);
    return fail(ErrorCode::conflict,
                fmt::format("{} holds several models ({}{}). Name one of them, or take all with "
                            "--all.",
                            name, fmt::join(names, ", "), more > 0 ? ", ..." : ""));
  }
  std::string message = fmt::format("{} holds no GGUF model.", name);
  if (!found->others.empty()) {
    const model::NoModel& one = found->others.front();
    message = fmt::format("{} holds no model that can be used: {}", name, one.error.message);
  } else if (!found->projectors.empty()) {
    message += fmt::format(" {} is a projector, which belongs to a model.",
                           shown(found->projectors.front(), folder));
  }
  return fail(ErrorCode::not_found, std::move(message));
}

class FolderImport {
 public:
  FolderImport(const CommandLine& line, ImportRun& run, fs::path folder)
      : line_(line), run_(run), folder_(std::move(folder)) {}

  void all() {
    auto found = model::find_models(folder_);
    if (!found) return run_.tell_failure(found.error().message);
    for (const model::ModelInFolder& one : found->models) {
      if (run_.is_interrupted()) return;
      take(one);
    }
    for (const model::NoModel& one : found->others) {
      if (one.error.code == ErrorCode::unsupported) {
        run_.tell_skipped(shown(one.path, folder_), one.error.message);
      } else {
        run_.tell_failure(one.error.message);
      }
    }
    for (const fs::path& path : found->projectors) {
      if (projectors_.contains(path)) continue;
      run_.tell_skipped(shown(path, folder_), "No model here has this projector.");
    }
    if (found->models.empty() && found->others.empty()) {
      run_.tell_failure(fmt::format("{} holds no GGUF model.", printable(folder_.string())));
    }
  }

 private:
  void take(const model::ModelInFolder& one) {
    const auto plan = model::plan_import(one.path, model::ProjectorRule::beside, std::nullopt);
    if (!plan) return run_.tell_failure(plan.error().message);
    for (const model::PlannedFile& file : plan->files) {
      if (file.role == model::FileRole::projector) projectors_.insert(file.path);
    }
    // Read anew for each: the models of this run count as well.
    const auto listing = run_.store().list();
    if (!listing) return run_.tell_failure(listing.error().message);
    const model::KnownDigests digests(model::manifests_of(listing->models));
    model::ImportRequest request = request_of(line_, one.path);
    request.id = model::default_model_id(plan->files.front().path, plan->weights);
    if (const auto id = model::installed_already(*plan, listing->models, digests)) {
      return run_.tell_already(*id, shown(one.path, folder_));
    }
    const std::string parent = fs::absolute(one.path).parent_path().filename().string();
    request.id = free_id(request.id, parent, listing->models);
    run_.take(request);
  }

  const CommandLine& line_;
  ImportRun& run_;
  fs::path folder_;
  std::set<fs::path> projectors_;  // that models have
};

int import_each(const CommandLine& line, const fs::path& home) {
  ImportRun run(home);
  for (const fs::path path : line.words) {
    if (run.is_interrupted()) break;
    std::error_code error;
    const bool looks_inside = fs::is_directory(path, error) && !model::is_engine_folder(path);
    const Result<fs::path> file = looks_inside ? only_model(path) : path;
    if (file) {
      run.take(request_of(line, *file));
    } else {
      run.tell_failure(file.error().message);
    }
  }
  return run.finish(ImportRun::Summary::no);
}

int import_all(const CommandLine& line, const fs::path& home) {
  ImportRun run(home);
  for (const std::string& folder : line.words) {
    FolderImport(line, run, fs::path(folder).lexically_normal()).all();
  }
  return run.finish(ImportRun::Summary::yes);
}

}  // namespace

bool ImportRun::is_interrupted() {
  interrupted_ = interrupted_ || signals_.take() != 0;
  return interrupted_;
}

void ImportRun::take(const model::ImportRequest& request) {
  const auto imported = store_.import_file(request, [this](const model::ImportProgress& now) {
    progress_.show(now.file, now.bytes_done, now.bytes_total);
    return is_interrupted() ? model::GoOn::stop : model::GoOn::yes;
  });
  progress_.clear();
  if (!imported) return tell_failure(imported.error().message);
  ++imported_;
  const model::Manifest& manifest = imported->manifest;
  const auto projector = imported->projector_path();
  fmt::print("{} is installed ({}{}{})\n", manifest.id,
             readable_bytes(model::total_bytes(manifest)),
             request.mode == model::ImportMode::link ? ", linked" : "",
             projector ? ", with projector" : "");
  std::fflush(stdout);
}

void ImportRun::tell_already(std::string_view id, std::string_view what) {
  ++already_;
  fmt::print("{} is installed already ({})\n", id, what);
}

void ImportRun::tell_skipped(std::string_view what, std::string_view reason) {
  ++skipped_;
  fmt::print("{} is left out: {}\n", what, reason);
}

void ImportRun::tell_failure(std::string_view message) {
  ++failed_;
  fmt::print(stderr, "werk: {}\n", message);
}

int ImportRun::finish(Summary summary) {
  if (summary == Summary::yes) {
    fmt::print("{} imported, {} installed already, {} left out, {} failed\n", imported_, already_,
               skipped_, failed_);
  }
  if (interrupted_) return kSignalStatus;
  return failed_ == 0 ? 0 : 1;
}

std::string free_id(std::string_view id, std::string_view prefix,
                    const std::vector<model::InstalledModel>& installed) {
  if (!model::is_taken(id, installed)) return std::string(id);
  const std::string longer = model::tidied_model_id(fmt::format("{}/{}", prefix, id));
  if (!model::is_taken(longer, installed)) return longer;
  for (std::size_t number = 2;; ++number) {
    std::string numbered = fmt::format("{}-{}", id, number);
    if (!model::is_taken(numbered, installed)) return numbered;
  }
}

int import_command(const CommandLine& line, const fs::path& home) {
  const bool named = !line.name.empty() || !line.aliases.empty() || !line.mmproj.empty();
  if (line.scan) {
    if (named || line.all) {
      return usage(
          "--scan goes with --link, --json and names alone; it takes the tools' own names");
    }
    return import_scan_command(line, process::own_variable, home);
  }
  if (line.json == Json::yes) return usage("--json goes with --scan");
  if (line.words.empty()) {
    return usage("name a model file or a folder, or look for those of other tools: --scan");
  }
  if (named && (line.all || line.words.size() > 1)) {
    return usage("--name, --alias and --mmproj are for one model; import the models one by one");
  }
  return line.all ? import_all(line, home) : import_each(line, home);
}

}  // namespace werk::app
