#include "werk/model/incoming.hpp"

#include <fstream>
#include <utility>
#include <vector>

#include "werk/base/digest.hpp"

namespace werk::model {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kIncoming = ".incoming-";
constexpr std::string_view kRetired = ".removed-";
constexpr std::size_t kRandomBytes = 8;

std::vector<fs::path> hidden_folders(const fs::path& models, std::string_view prefix) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator entry(models, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().filename().string().starts_with(prefix)) found.push_back(entry->path());
  }
  return found;
}

fs::path new_folder(const fs::path& models, std::string_view prefix) {
  return models / (std::string(prefix) + random_hex(kRandomBytes));
}

}  // namespace

Result<Incoming> Incoming::begin(const fs::path& models, std::string_view id, StoreFiles& files) {
  Incoming incoming(new_folder(models, kIncoming));
  const fs::path& folder = incoming.folder_;
  if (Status made = files.make_folder(folder); !made) return pass_on(made);
  Result<FileLock> lock = files.lock(folder / "lock");
  if (!lock) return pass_on(lock);
  incoming.lock_.emplace(std::move(*lock));
  if (Status written = files.write_file(folder / "id", id); !written) return pass_on(written);
  if (Status made = files.make_folder(incoming.model_folder()); !made) return pass_on(made);
  const fs::path content = incoming.model_folder() / "files";
  if (Status made = files.make_folder(content); !made) return pass_on(made);
  return incoming;
}

Incoming::Incoming(Incoming&& other) noexcept
    : folder_(std::exchange(other.folder_, {})), lock_(std::move(other.lock_)) {}

Incoming::~Incoming() {
  if (folder_.empty()) return;
  // While the lock is held nobody else deletes the folder; what fails here is swept later.
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

void sweep_leftovers(const fs::path& models) {
  std::error_code ignored;
  for (const fs::path& folder : hidden_folders(models, kIncoming)) {
    // Without a lock file its process died before it had made one: the store's lock, which is held
    // here, guards that moment.
    const bool has_lock = fs::exists(folder / "lock", ignored);
    const std::optional<FileLock> lock = StoreFiles::try_lock(folder / "lock");
    if (lock || !has_lock) fs::remove_all(folder, ignored);
  }
  for (const fs::path& folder : hidden_folders(models, kRetired)) fs::remove_all(folder, ignored);
}

bool is_being_imported(const fs::path& models, std::string_view id) {
  for (const fs::path& folder : hidden_folders(models, kIncoming)) {
    if (StoreFiles::try_lock(folder / "lock")) continue;
    std::ifstream file(folder / "id", std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    if (file && text == id) return true;
  }
  return false;
}

fs::path retired_folder(const fs::path& models) { return new_folder(models, kRetired); }

}  // namespace werk::model
