// OutputFiles: what engines printed, on disk: `<folder>/<model's folder name>.log` and the older
// `.log.1`, `.log.2`, ... of each model, bounded in size and number, readable by their owner alone.
// Every call blocks on the disk and keeps no state, so any thread may make it; one writer at a
// time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "werk/base/result.hpp"

namespace werk::engine {

class OutputFiles {
 public:
  explicit OutputFiles(std::filesystem::path folder, std::uint64_t file_bytes_max = 4u << 20,
                       unsigned older_files = 3)
      : folder_(std::move(folder)), file_bytes_max_(file_bytes_max), older_files_(older_files) {}

  // Makes the folder and begins a new file where needed. Fails with `io`.
  Status append(const std::string& model, std::string_view text) const;
  // The last lines, over all of the model's files; "" where there is none. Fails with `io`.
  Result<std::string> last_lines(const std::string& model, std::size_t lines) const;
  bool holds(const std::string& model) const;
  // The models that have files, by name.
  std::vector<std::string> models() const;
  const std::filesystem::path& folder() const { return folder_; }

 private:
  // 0 is the newest.
  std::filesystem::path file(const std::string& model, unsigned age) const;
  Status rotate(const std::string& model) const;

  std::filesystem::path folder_;
  std::uint64_t file_bytes_max_;
  unsigned older_files_;
};

// What stands before the lines of each model where those of several are shown together.
std::string output_heading(std::string_view model);

}  // namespace werk::engine
