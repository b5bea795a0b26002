// The folder below the home where the files of one pull come together, held by one process at a
// time. What is in it outlives the process, so that the next one goes on from there; an empty one
// goes with its holder. Owned by a pull; blocking.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "werk/base/result.hpp"
#include "werk/model/store_files.hpp"
#include "werk/process/descriptor.hpp"

namespace werk::app {

class DownloadPlace {
 public:
  // `busy` is called again and again while another process holds it, and may wait; stop ends the
  // waiting with `cancelled`.
  static Result<DownloadPlace> take(const std::filesystem::path& downloads, std::string_view key,
                                    const std::function<model::GoOn()>& busy,
                                    model::WriteHook* hook);
  DownloadPlace(DownloadPlace&& other) noexcept;
  DownloadPlace& operator=(DownloadPlace&&) = delete;
  ~DownloadPlace();

  const std::filesystem::path& folder() const { return folder_; }
  // Deletes it with all that is in it.
  void clear();

 private:
  DownloadPlace(std::filesystem::path folder, std::filesystem::path lock_file,
                process::Descriptor lock)
      : folder_(std::move(folder)), lock_file_(std::move(lock_file)), lock_(std::move(lock)) {}

  std::filesystem::path folder_;  // empty once moved from
  std::filesystem::path lock_file_;
  process::Descriptor lock_;
};

}  // namespace werk::app
