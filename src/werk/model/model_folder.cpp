#include "werk/model/model_folder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "werk/base/text.hpp"
#include "werk/model/import_plan.hpp"
#include "werk/model/split_name.hpp"
#include "werk/model/store_files.hpp"

namespace werk::model {
namespace {

namespace fs = std::filesystem;

bool is_hidden(const fs::path& path) { return path.filename().string().starts_with('.'); }

// The files that may be models, in the order of their paths.
class Walk {
 public:
  explicit Walk(FolderModels& found) : found_(found) {}

  Result<std::vector<fs::path>> run(const fs::path& top) {
    std::error_code error;
    fs::recursive_directory_iterator entry(top, fs::directory_options::none, error);
    if (error) {
      Error failure = read_error("read the folder", top, error.value());
      if (error == std::errc::no_such_file_or_directory) failure.code = ErrorCode::not_found;
      return fail(std::move(failure));
    }
    for (const fs::recursive_directory_iterator end; entry != end;) {
      if (++seen_ > kFolderFilesMax) {
        return fail(ErrorCode::io, fmt::format("{} holds more than {} files; name a folder that "
                                               "holds models alone.",
                                               top.string(), kFolderFilesMax));
      }
      look_at(entry);
      entry.increment(error);
      // The walk is over at the first folder that breaks off in the middle.
      if (error) return fail(read_error("read the folder", top, error.value()));
    }
    std::sort(files_.begin(), files_.end());
    return std::move(files_);
  }

 private:
  void look_at(fs::recursive_directory_iterator& entry) {
    const fs::path& path = entry->path();
    std::error_code error;
    if (entry->is_directory(error) && !entry->is_symlink(error)) {
      if (is_hidden(path) || entry.depth() >= kFolderDepthMax) {
        entry.disable_recursion_pending();
      } else if (fs::directory_iterator test(path, error); error) {
        found_.others.push_back({path, read_error("read the folder", path, error.value())});
        entry.disable_recursion_pending();
      }
      return;
    }
    if (is_hidden(path) || !to_lower(path.filename().string()).ends_with(".gguf")) return;
    files_.push_back(path);
  }

  FolderModels& found_;
  std::vector<fs::path> files_;
  std::size_t seen_ = 0;
};

}  // namespace

Result<FolderModels> find_models(const fs::path& folder) {
  FolderModels found;
  Result<std::vector<fs::path>> files = Walk(found).run(folder);
  if (!files) return pass_on(files);
  std::set<std::pair<std::string, std::uint32_t>> sets;
  for (const fs::path& path : *files) {
    const auto split = parse_split_name(path.filename().string());
    if (split && split->count > 1) {
      const std::string prefix = (path.parent_path() / split->prefix).string();
      if (!sets.emplace(prefix, split->count).second) continue;
    }
    Result<GgufInfo> info = read_header(path);
    if (!info) {
      found.others.push_back({path, std::move(info.error())});
    } else if (info->purpose == GgufPurpose::projector) {
      found.projectors.push_back(path);
    } else if (const auto reason = no_model_because(info->purpose); !reason.empty()) {
      found.others.push_back({path, Error{ErrorCode::unsupported, std::string(reason)}});
    } else {
      found.models.push_back({path, std::move(*info)});
    }
  }
  std::sort(found.others.begin(), found.others.end(),
            [](const NoModel& a, const NoModel& b) { return a.path < b.path; });
  return found;
}

}  // namespace werk::model
