#include "werk/model/store.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "werk/base/text.hpp"
#include "werk/model/incoming.hpp"
#include "werk/model/model_id.hpp"

namespace werk::model {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kManifestName = "manifest.json";
constexpr std::int64_t kNsOfSecond = 1'000'000'000;

Result<std::string> read_text(const fs::path& path, std::size_t bytes_max) {
  auto source = FileSource::open(path);
  if (!source) return pass_on(source);
  if ((*source)->size_bytes() > bytes_max) {
    return fail(ErrorCode::model_unusable, "The manifest is unusable: it is larger than 1 MiB.");
  }
  std::string text(static_cast<std::size_t>((*source)->size_bytes()), '\0');
  Result<std::size_t> count = (*source)->read_at(0, text);
  if (!count) return pass_on(count);
  text.resize(*count);
  return text;
}

std::string id_of_folder(const fs::path& folder) {
  const std::string name = folder.filename().string();
  return folder_id(name).value_or(printable(name));
}

// With the names that resemble it, if there are any.
Error not_installed(ErrorCode code, std::string_view name, const Listing& listing) {
  std::vector<std::string> known;
  for (const InstalledModel& model : listing.models) {
    known.push_back(model.manifest.id);
    known.insert(known.end(), model.manifest.aliases.begin(), model.manifest.aliases.end());
  }
  std::string message = fmt::format("No model '{}' is installed.", printable(name));
  if (const auto near = near_names(name, known); !near.empty()) {
    message += fmt::format(" Did you mean {}?", fmt::join(near, ", "));
  }
  return Error{code, std::move(message)};
}

}  // namespace

fs::path InstalledModel::path_of(const ManifestFile& file) const {
  return file.linked ? fs::path(file.path) : folder / file.path;
}

fs::path InstalledModel::weights_path() const {
  const ManifestFile* file = first_file(manifest, FileRole::weights);
  return file ? path_of(*file) : fs::path();
}

std::optional<fs::path> InstalledModel::projector_path() const {
  const ManifestFile* file = first_file(manifest, FileRole::projector);
  return file ? std::optional<fs::path>(path_of(*file)) : std::nullopt;
}

Store::Store(fs::path home, StoreOptions options)
    : models_(std::move(home) / "models"), options_(std::move(options)) {}

Result<InstalledModel> Store::read_folder(const fs::path& folder) const {
  Result<std::string> text = read_text(folder / kManifestName, kManifestBytesMax);
  if (!text) return pass_on(text);
  Result<Manifest> manifest = read_manifest(*text);
  if (!manifest) return pass_on(manifest);
  if (folder_name(manifest->id) != folder.filename().string()) {
    return fail(ErrorCode::model_unusable,
                "The manifest is unusable: id does not belong to the folder it lies in.");
  }
  return InstalledModel{std::move(*manifest), folder};
}

Result<Listing> Store::list() const {
  Listing listing;
  std::error_code error;
  fs::directory_iterator entry(models_, error);
  for (const fs::directory_iterator end; !error && entry != end; entry.increment(error)) {
    const fs::path folder = entry->path();
    std::error_code ignored;
    if (folder.filename().string().starts_with('.') || !fs::is_directory(folder, ignored)) continue;
    Result<InstalledModel> model = read_folder(folder);
    if (model) {
      listing.models.push_back(std::move(*model));
      continue;
    }
    // Removed since the folder was listed: nothing to report.
    if (!fs::exists(folder, ignored)) continue;
    if (model.error().code == ErrorCode::not_found) {
      model.error() = Error{ErrorCode::model_unusable, "The folder has no manifest.json."};
    }
    listing.broken.push_back({id_of_folder(folder), std::move(model.error())});
  }
  if (error && error.value() != ENOENT) {
    return fail(read_error("read the folder", models_, error.value()));
  }
  std::sort(listing.models.begin(), listing.models.end(),
            [](const auto& a, const auto& b) { return a.manifest.id < b.manifest.id; });
  std::sort(listing.broken.begin(), listing.broken.end(),
            [](const auto& a, const auto& b) { return a.id < b.id; });
  return listing;
}

Result<InstalledModel> Store::find(std::string_view name) const {
  if (check_model_id(name)) {
    Result<InstalledModel> model = read_folder(models_ / folder_name(name));
    if (model) return model;
    if (model.error().code != ErrorCode::not_found) {
      return fail(ErrorCode::model_unusable,
                  fmt::format("Model '{}' cannot be used. {}", name,
                              model.error().code == ErrorCode::io
                                  ? "Its manifest cannot be read."
                                  : model.error().message));
    }
  }
  Result<Listing> listing = list();
  if (!listing) return pass_on(listing);
  for (InstalledModel& model : listing->models) {
    const auto& aliases = model.manifest.aliases;
    if (std::find(aliases.begin(), aliases.end(), name) != aliases.end()) return std::move(model);
  }
  return fail(not_installed(ErrorCode::model_not_found, name, *listing));
}

Status Store::check_free(std::string_view id, const std::vector<std::string>& aliases) const {
  std::error_code ignored;
  const Result<Listing> listing = list();
  if (!listing) return fail(listing.error());
  std::vector<std::string_view> wanted(aliases.begin(), aliases.end());
  wanted.push_back(id);
  for (const std::string_view name : wanted) {
    if (fs::exists(models_ / folder_name(name), ignored)) {
      return fail(ErrorCode::conflict,
                  fmt::format("A model '{}' is installed already. Choose another name, or remove "
                              "that one first: werk remove {}",
                              name, shell_line(std::vector<std::string>{std::string(name)})));
    }
    for (const InstalledModel& model : listing->models) {
      const auto& taken = model.manifest.aliases;
      if (std::find(taken.begin(), taken.end(), name) != taken.end()) {
        return fail(ErrorCode::conflict,
                    fmt::format("'{}' is an alias of the installed model '{}'.", name,
                                model.manifest.id));
      }
    }
  }
  return {};
}

Result<FileLock> Store::lock_for_change(StoreFiles& files) const {
  Result<FileLock> lock = files.lock(models_ / ".lock");
  if (lock) sweep_leftovers(models_);
  return lock;
}

void Store::sweep() const {
  if (const auto lock = StoreFiles::try_lock(models_ / ".lock")) sweep_leftovers(models_);
}

Status Store::remove(std::string_view id) const {
  StoreFiles files(options_.hook);
  const fs::path folder = models_ / folder_name(id);
  const fs::path retired = retired_folder(models_);
  std::error_code ignored;
  if (!fs::is_directory(models_, ignored)) {
    return fail(not_installed(ErrorCode::not_found, id, Listing{}));
  }
  {
    Result<FileLock> lock = lock_for_change(files);
    if (!lock) return pass_on(lock);
    if (!check_model_id(id) || !fs::exists(folder, ignored)) {
      const Result<Listing> listing = list();
      return fail(not_installed(ErrorCode::not_found, id, listing ? *listing : Listing{}));
    }
    if (Status moved = files.move(folder, retired, WriteStep::retire); !moved) return moved;
    if (Status synced = files.sync_folder(models_); !synced) return synced;
  }
  Status erased = files.erase(retired);
  if (!erased) {
    erased.error().message =
        fmt::format("The model '{}' is removed, but its files could not all be deleted. {} The "
                    "next import or remove tries again.",
                    id, erased.error().message);
  }
  return erased;
}

Status verify(const InstalledModel& model) {
  const Manifest& manifest = model.manifest;
  for (const ManifestFile& file : manifest.files) {
    const auto unusable = [&](std::string_view what) {
      const std::string id = shell_line(std::vector<std::string>{manifest.id});
      return fail(ErrorCode::model_unusable,
                  fmt::format("Model '{}' cannot be loaded: its file {} {}. Import it again: werk "
                              "remove {}, then werk import.",
                              manifest.id, fs::path(file.path).filename().string(), what, id));
    };
    struct stat facts {};
    if (::stat(model.path_of(file).c_str(), &facts) != 0) {
      return unusable(errno == ENOENT || errno == ENOTDIR ? "is missing" : "cannot be reached");
    }
    if (!S_ISREG(facts.st_mode)) return unusable("is no file any more");
    if (static_cast<std::uint64_t>(facts.st_size) != file.size_bytes) {
      return unusable(fmt::format("has {} bytes instead of {}", facts.st_size, file.size_bytes));
    }
    const std::int64_t modified_ns = facts.st_mtim.tv_sec * kNsOfSecond + facts.st_mtim.tv_nsec;
    if (file.linked && modified_ns != file.modified_ns) {
      return unusable("was changed since it was imported");
    }
  }
  return {};
}

}  // namespace werk::model
