// The models installed in one home folder: models/<folder of the id>/manifest.json and files/.
// Reading takes no lock and sees each model whole or not at all, since changes are renames; changes
// are guarded by models/.lock across processes, and a process that dies in the middle leaves
// nothing that looks installed. Every call blocks on the disk (run it through async::offload or in
// a command); a Store has no state of its own, so any thread may call it, several at once.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "werk/base/result.hpp"
#include "werk/model/import_plan.hpp"
#include "werk/model/manifest.hpp"
#include "werk/model/store_files.hpp"

namespace werk::model {

struct InstalledModel {
  Manifest manifest;
  std::filesystem::path folder;

  // Where a file of the manifest lies, absolute if the home is.
  std::filesystem::path path_of(const ManifestFile& file) const;
  // What an engine's launch line names; a projector only where there is one.
  std::filesystem::path weights_path() const;
  std::optional<std::filesystem::path> projector_path() const;
};

// A folder in the store that is not a usable model.
struct BrokenModel {
  std::string id;  // as far as the folder's name tells, else that name
  Error error;
};

struct Listing {
  std::vector<InstalledModel> models;  // by id
  std::vector<BrokenModel> broken;
};

enum class ImportMode : std::uint8_t {
  copy,  // the store has its own files
  link,  // the files stay where they are and belong to somebody else
  move   // the files become the store's own; they lie in its file system, and nobody writes them
};

struct ImportRequest {
  std::filesystem::path path;  // a GGUF file; of a split set any of its files
  std::string id;              // empty: default_model_id()
  std::vector<std::string> aliases;
  ImportMode mode = ImportMode::copy;
  std::string source;
  std::string licence;  // empty: what the file says
  ProjectorRule projector_rule = ProjectorRule::beside;
  std::optional<std::filesystem::path> projector;
  std::string expected_sha256;  // of the first weights file; empty: whatever it is
  // With `move`, by file name: what the caller has digested itself is not read again.
  std::map<std::string, std::string> known_sha256;
};

struct ImportProgress {
  std::uint64_t bytes_done = 0;
  std::uint64_t bytes_total = 0;
  std::string_view file;  // its name
};
// Called often, on the importing thread. `stop` ends the import with `cancelled` and leaves
// nothing.
using OnProgress = std::function<GoOn(const ImportProgress&)>;

struct StoreOptions {
  // For imported_at.
  std::function<std::chrono::system_clock::time_point()> now = std::chrono::system_clock::now;
  // Tests make steps fail with it; it must outlive the store.
  WriteHook* hook = nullptr;
};

class Store {
 public:
  explicit Store(std::filesystem::path home, StoreOptions options = {});

  // A home that does not exist yet has no models. Fails with `io` when the folder cannot be read.
  Result<Listing> list() const;

  // By id, else by alias. `model_not_found` with near names; `model_unusable` when its manifest is
  // broken. Messages hold no path.
  Result<InstalledModel> find(std::string_view name) const;

  // Copies or links a model into the store, digests it and makes it visible at the end in one step.
  // A linked file whose digest is known (KnownDigests) is not read.
  // `conflict` when the id or an alias is taken, by an installed model or by an import that is
  // under way; nothing is ever overwritten. After an error nothing is left behind, and files to
  // be moved are where they were. Messages name paths.
  Result<InstalledModel> import_file(const ImportRequest& request,
                                     const OnProgress& on_progress = {}) const;

  // Deletes what imports and removals of dead processes have left, as every change does first. Does
  // nothing while another process changes the store.
  void sweep() const;

  // By id only, broken ones too. The model is gone at once; then its files are deleted, linked ones
  // excepted. `not_found` when there is none; `io` when files could not be deleted (the next change
  // tries again). Whoever holds the files open keeps them until it closes them.
  Status remove(std::string_view id) const;

 private:
  class Import;

  Result<InstalledModel> read_folder(const std::filesystem::path& folder) const;
  Status check_free(std::string_view id, const std::vector<std::string>& aliases) const;
  Result<FileLock> lock_for_change(StoreFiles& files) const;

  std::filesystem::path models_;
  StoreOptions options_;
};

// Cheap, without digests: every file exists with the size it had at import, a linked one also with
// the same time. Fails with `model_unusable` and what to do, without a path.
Status verify(const InstalledModel& model);

}  // namespace werk::model
