// A model on its way into the store: a hidden folder beside the installed ones, with a lock that
// lives as long as its process. Either the model is renamed into its place or the folder vanishes;
// what a killed process left is found by its free lock and deleted by whoever changes the store
// next. begin() and sweep() are called with the store's lock held. One thread.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "werk/base/result.hpp"
#include "werk/model/store_files.hpp"

namespace werk::model {

class Incoming {
 public:
  // `models` is the store's folder. Fails as the disk does, leaving nothing.
  static Result<Incoming> begin(const std::filesystem::path& models, std::string_view id,
                                StoreFiles& files);

  Incoming(Incoming&& other) noexcept;
  Incoming& operator=(Incoming&&) = delete;
  // Deletes the folder with all that is still in it.
  ~Incoming();

  // The folder that becomes the model's; made by begin(), with `files` in it.
  std::filesystem::path model_folder() const { return folder_ / "model"; }

 private:
  explicit Incoming(std::filesystem::path folder) : folder_(std::move(folder)) {}

  std::filesystem::path folder_;  // empty once moved from
  std::optional<FileLock> lock_;
};

// Deletes what dead processes left: imports that were cut off, and models removed but not yet
// deleted. What cannot be deleted stays for the next time.
void sweep_leftovers(const std::filesystem::path& models);

// Whether another process (or thread) is importing a model of this id now.
bool is_being_imported(const std::filesystem::path& models, std::string_view id);

// A name for a folder of a model that was removed and is to be deleted.
std::filesystem::path retired_folder(const std::filesystem::path& models);

}  // namespace werk::model
