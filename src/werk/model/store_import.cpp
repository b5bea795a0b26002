#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include "werk/base/text.hpp"
#include "werk/model/incoming.hpp"
#include "werk/model/known_digests.hpp"
#include "werk/model/model_id.hpp"
#include "werk/model/model_name.hpp"
#include "werk/model/store.hpp"

namespace werk::model {
namespace {

namespace fs = std::filesystem;

std::string utc_text(std::chrono::system_clock::time_point time) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(time);
  std::tm parts{};
  if (!::gmtime_r(&seconds, &parts)) return {};
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec);
}

// Texts of the request stand in the manifest, which refuses control characters when it is read.
std::string one_line(std::string_view text) {
  std::string line = printable(text);
  std::replace_if(
      line.begin(), line.end(), [](char c) { return c == '\n' || c == '\t'; }, ' ');
  return line;
}

}  // namespace

// One import, from the plan to the rename.
class Store::Import {
 public:
  Import(const Store& store, const ImportRequest& request, const OnProgress& on_progress)
      : store_(store),
        request_(request),
        on_progress_(on_progress),
        files_(store.options_.hook),
        id_(request.id) {}

  Result<InstalledModel> run() {
    // Early where the id is given: what can't be named needn't be read.
    if (Status right = id_.empty() ? Status() : check_names(); !right) return pass_on(right);
    Result<ImportPlan> plan =
        plan_import(request_.path, request_.projector_rule, request_.projector);
    if (!plan) return pass_on(plan);
    if (id_.empty()) {
      id_ = plan->facts ? folder_model_id(plan->files.front().path.parent_path())
                        : default_model_id(plan->files.front().path, plan->weights);
      if (Status right = check_names(); !right) return pass_on(right);
    }
    if (Status made = files_.make_folders(store_.models_); !made) return pass_on(made);
    Result<Incoming> incoming = reserve();
    if (!incoming) return pass_on(incoming);

    Manifest manifest = manifest_of(*plan);
    manifest.id = id_;
    manifest.aliases = request_.aliases;
    manifest.source = one_line(request_.source);
    if (!request_.licence.empty()) manifest.licence = one_line(request_.licence);
    manifest.imported_at = utc_text(store_.options_.now());
    Status done = take_files(*plan, incoming->model_folder(), manifest);
    if (done) done = write_out(incoming->model_folder(), manifest);
    if (done) done = publish(incoming->model_folder());
    if (!done) give_back(*plan, incoming->model_folder());
    if (!done) return pass_on(done);
    forget_sources(*plan);
    return InstalledModel{std::move(manifest), final_folder()};
  }

 private:
  fs::path final_folder() const { return store_.models_ / folder_name(id_); }

  Status check_names() const {
    if (Status right = check_model_id(id_); !right) return right;
    for (const std::string& alias : request_.aliases) {
      if (Status right = check_model_id(alias); !right) return right;
      const auto count = std::count(request_.aliases.begin(), request_.aliases.end(), alias);
      if (alias == id_ || count > 1) {
        return fail(ErrorCode::invalid_request,
                    fmt::format("The alias '{}' is given twice.", alias));
      }
    }
    return {};
  }

  // Early and cheap: a taken name is refused before gigabytes are copied.
  Result<Incoming> reserve() {
    Result<FileLock> lock = store_.lock_for_change(files_);
    if (!lock) return pass_on(lock);
    if (Status free = store_.check_free(id_, request_.aliases); !free) return pass_on(free);
    if (is_being_imported(store_.models_, id_)) {
      return fail(ErrorCode::conflict,
                  fmt::format("Another process is importing a model '{}' at this moment.", id_));
    }
    return Incoming::begin(store_.models_, id_, files_);
  }

  Status take_files(const ImportPlan& plan, const fs::path& folder, Manifest& manifest) {
    ImportProgress progress;
    for (const PlannedFile& file : plan.files) progress.bytes_total += file.size_bytes;
    const bool linked = request_.mode == ImportMode::link;
    const KnownDigests known = linked ? known_digests() : KnownDigests();
    for (const PlannedFile& file : plan.files) {
      progress.file = file.name;
      const auto on_bytes = [&](std::uint64_t bytes) {
        progress.bytes_done += bytes;
        return on_progress_ ? on_progress_(progress) : GoOn::yes;
      };
      CopyOrder order{file.path, {}, progress.bytes_total - progress.bytes_done, {}};
      const fs::path target = folder / "files" / file.name;
      if (linked) order.known_sha256 = known.find(file.path).value_or("");
      if (moves()) order.known_sha256 = known_digest(file.path);
      if (request_.mode == ImportMode::copy) order.target = target;
      Result<CopiedFile> copied = files_.copy(order, on_bytes);
      if (!copied) return pass_on(copied);
      if (copied->size_bytes != file.size_bytes || copied->modified_ns != file.modified_ns) {
        return fail(ErrorCode::conflict,
                    fmt::format("{} changed while it was read; import it again when nobody writes "
                                "it.",
                                file.path.string()));
      }
      if (Status own = moves() ? files_.adopt(file.path, target) : Status(); !own) return own;
      ManifestFile entry{file.role, linked ? file.path.string() : "files/" + file.name,
                         copied->size_bytes, std::move(copied->sha256), linked};
      if (request_.mode == ImportMode::copy) entry.origin = file.path.string();
      if (!moves()) entry.modified_ns = copied->modified_ns;
      manifest.files.push_back(std::move(entry));
    }
    return check_digests(manifest);
  }

  KnownDigests known_digests() const {
    const Result<Listing> listing = store_.list();
    std::vector<Manifest> manifests;
    if (listing) {
      for (const InstalledModel& model : listing->models) manifests.push_back(model.manifest);
    }
    return KnownDigests(manifests);
  }

  Status check_digests(const Manifest& manifest) const {
    const std::string& digest = manifest.files.front().sha256;
    if (!request_.expected_sha256.empty() && digest != request_.expected_sha256) {
      return fail(ErrorCode::model_unusable,
                  fmt::format("{} is not the file it should be: its SHA-256 is {} instead of {}. "
                              "Get it anew.",
                              request_.path.string(), digest, request_.expected_sha256));
    }
    return {};
  }

  bool moves() const { return request_.mode == ImportMode::move; }

  std::string known_digest(const fs::path& path) const {
    const auto known = request_.known_sha256.find(path.filename().string());
    return known == request_.known_sha256.end() ? std::string() : known->second;
  }

  // Where a file can't have two names its only one is in the folder that is about to vanish.
  void give_back(const ImportPlan& plan, const fs::path& folder) const {
    std::error_code ignored;
    for (const PlannedFile& file : plan.files) {
      if (!moves() || fs::exists(file.path, ignored)) continue;
      fs::rename(folder / "files" / file.name, file.path, ignored);
    }
  }

  void forget_sources(const ImportPlan& plan) const {
    std::error_code ignored;
    for (const PlannedFile& file : plan.files) {
      if (moves()) fs::remove(file.path, ignored);
    }
  }

  Status write_out(const fs::path& folder, const Manifest& manifest) {
    const std::string text = write_manifest(manifest);
    // What could not be read back must not become visible.
    if (Result<Manifest> read = read_manifest(text); !read) return pass_on(read);
    Status done = files_.write_file(folder / "manifest.json", text);
    if (done) done = files_.sync_folder(folder / "files");
    if (done) done = files_.sync_folder(folder);
    return done;
  }

  Status publish(const fs::path& folder) {
    Result<FileLock> lock = store_.lock_for_change(files_);
    if (!lock) return pass_on(lock);
    if (Status free = store_.check_free(id_, request_.aliases); !free) return free;
    const fs::path place = final_folder();
    if (Status moved = files_.move(folder, place, WriteStep::publish); !moved) return moved;
    Status synced = files_.sync_folder(store_.models_);
    if (!synced) {
      // An import that reports a failure leaves no model.
      std::error_code ignored;
      fs::rename(place, folder, ignored);
    }
    return synced;
  }

  const Store& store_;
  const ImportRequest& request_;
  const OnProgress& on_progress_;
  StoreFiles files_;
  std::string id_;
};

Result<InstalledModel> Store::import_file(const ImportRequest& request,
                                          const OnProgress& on_progress) const {
  return Import(*this, request, on_progress).run();
}

}  // namespace werk::model
