#include "werk/app/hub_pull.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "werk/app/download_place.hpp"
#include "werk/app/progress.hpp"
#include "werk/base/digest.hpp"
#include "werk/base/text.hpp"
#include "werk/model/model_id.hpp"
#include "werk/model/store.hpp"

namespace werk::app {
namespace {

namespace fs = std::filesystem;
using model::GoOn;

constexpr int kPagesMax = 200;
constexpr std::size_t kKeyDigits = 16;
constexpr std::size_t kKeyNameMax = 60;
constexpr std::chrono::milliseconds kBetweenLooks{300};
constexpr std::chrono::milliseconds kBetweenLines{200};

// Of one pull, from the question to the store.
class HubRun {
 public:
  HubRun(const HubPull& pull, const Surroundings& around, const Say& say, const Patience& patience)
      : pull_(pull),
        around_(around),
        say_(say),
        store_(pull.home, options_of(around)),
        downloader_(pull.hub, around, patience),
        id_(pull.id) {}

  Result<std::string> run() {
    if (Status right = check_request(); !right) return pass_on(right);
    if (is_known_to_be_there()) return already();
    say_(Note::line,
         fmt::format("[1/3] look at {} ({})", pull_.name.repository, one_line(pull_.revision)));
    if (Status looked = look(); !looked) return pass_on(looked);
    auto there = is_there();
    if (!there) return pass_on(there);
    if (*there) return already();
    auto place = take_place();
    if (!place) return pass_on(place);
    // Another one may have brought it while this one waited.
    there = is_there();
    if (!there) return pass_on(there);
    if (*there) return already();
    auto brought = bring(*place);
    if (!brought) return fail(with_what_is_kept(std::move(brought.error())));
    return brought;
  }

 private:
  static model::StoreOptions options_of(const Surroundings& around) {
    model::StoreOptions options;
    options.hook = around.hook;
    return options;
  }

  std::string already() const { return fmt::format("{} is installed", id_); }

  Status check_request() const {
    if (Status right = check_revision(pull_.revision); !right) return right;
    if (!id_.empty()) {
      if (Status right = model::check_model_id(id_); !right) return right;
    }
    for (const std::string& alias : pull_.aliases) {
      if (Status right = model::check_model_id(alias); !right) return right;
    }
    return {};
  }

  // Needs no network where the id is known before the hub is asked.
  bool is_known_to_be_there() {
    if (pull_.if_missing == IfMissing::no) return false;
    std::string id = id_;
    if (id.empty() && pull_.file.empty() && !pull_.name.quantization.empty()) {
      id = fmt::format("{}:{}", pull_.name.repository, upper_case(pull_.name.quantization));
    }
    if (id.empty() || !store_.find(id)) return false;
    id_ = std::move(id);
    return true;
  }

  // What the person may have meant; the hub is asked once or twice more, without patience.
  Error with_near_names(Error error) const {
    const bool unknown =
        error.code == ErrorCode::not_found || error.code == ErrorCode::unauthorized;
    if (!unknown) return error;
    const std::string& name = pull_.name.repository;
    const std::size_t slash = name.find('/');
    Patience none;
    none.tries = 1;
    Downloader quick(pull_.hub, around_, none);
    for (const std::string& url : {owner_url(pull_.hub, name.substr(0, slash)),
                                   search_url(pull_.hub, name.substr(slash + 1))}) {
      const auto found = quick.document(url, HubQuestion{name, {}, {}});
      if (!found) return error;
      const auto near = near_names(name, parse_repositories(found->text));
      if (near.empty()) continue;
      error.message += fmt::format("; did you mean hf:{}?", fmt::join(near, ", hf:"));
      return error;
    }
    return error;
  }

  Status look() {
    const HubQuestion question{pull_.name.repository, pull_.revision, {}};
    auto about = downloader_.document(
        revision_url(pull_.hub, pull_.name.repository, pull_.revision), question);
    if (!about) return fail(with_near_names(std::move(about.error())));
    auto revision = parse_revision(about->text);
    if (!revision) return pass_on(revision);
    revision_ = std::move(*revision);
    std::vector<HubFile> files;
    std::string url = tree_url(pull_.hub, pull_.name.repository, revision_.commit);
    for (int pages = 0; !url.empty(); ++pages) {
      if (pages == kPagesMax) {
        return fail(ErrorCode::io, fmt::format("{} lists more than {} pages of files",
                                               pull_.name.repository, kPagesMax));
      }
      auto page = downloader_.document(url, question);
      if (!page) return pass_on(page);
      if (Status read = parse_tree(page->text, files); !read) return read;
      url = next_page(pull_.hub, page->link);
    }
    auto choice = choose_files(files, pull_.name, pull_.file);
    if (!choice) return pass_on(choice);
    choice_ = std::move(*choice);
    if (id_.empty()) id_ = hub_model_id(pull_.name.repository, choice_);
    wanted_ = choice_.weights;
    if (choice_.projector) wanted_.push_back(*choice_.projector);
    total_bytes_ = total_bytes(choice_);
    return {};
  }

  // Whether nothing is to be done; `conflict` when a name belongs to another model.
  Result<bool> is_there() const {
    const auto found = store_.find(id_);
    if (!found && found.error().code != ErrorCode::model_not_found) {
      return fail(Error(found.error()));
    }
    if (found) {
      const std::string& digest = choice_.weights.front().sha256;
      const bool same = found->manifest.id == id_ && !digest.empty() &&
                        found->manifest.files.front().sha256 == digest;
      if (same || pull_.if_missing == IfMissing::yes) return true;
      return fail(ErrorCode::conflict,
                  fmt::format("another model is called '{}' already; give this one a name with "
                              "--name ID, or `werk remove` that one",
                              id_));
    }
    for (const std::string& alias : pull_.aliases) {
      const auto taken = store_.find(alias);
      if (taken) {
        return fail(ErrorCode::conflict, fmt::format("the alias '{}' belongs to {} already; choose "
                                                     "another",
                                                     alias, taken->manifest.id));
      }
    }
    return false;
  }

  // The same files have the same folder, whatever the model is to be called.
  std::string key() const {
    std::string all = pull_.name.repository;
    for (const HubFile& file : wanted_) {
      all += fmt::format("\n{}\n{}\n{}", file.path, file.size_bytes,
                         file.sha256.empty() ? revision_.commit : file.sha256);
    }
    const std::string name =
        pull_.name.repository.substr(pull_.name.repository.find('/') + 1).substr(0, kKeyNameMax);
    return fmt::format("{}-{}", name, sha256_hex(all).substr(0, kKeyDigits));
  }

  Result<DownloadPlace> take_place() {
    bool told = false;
    const auto busy = [this, &told] {
      if (!told) around_.tell("another werk fetches the same; waiting for it");
      told = true;
      return around_.wait(kBetweenLooks);
    };
    return DownloadPlace::take(pull_.home / "downloads", key(), busy, around_.hook);
  }

  std::uint64_t bytes_there() const {
    std::uint64_t sum = 0;
    for (const HubFile& file : wanted_) {
      const fs::path whole = folder_ / local_name(file);
      for (const fs::path& path : {whole, part_path(whole)}) {
        std::error_code error;
        const std::uintmax_t size = fs::file_size(path, error);
        if (!error) sum += std::min<std::uint64_t>(size, file.size_bytes);
      }
    }
    return sum;
  }

  Status check_space(std::uint64_t there_bytes) const {
    const std::uint64_t needed = total_bytes_ - std::min(there_bytes, total_bytes_);
    const auto free = around_.free_bytes(folder_);
    if (!free || *free >= needed) return {};
    return fail(ErrorCode::io,
                fmt::format("{} needs {} more in {}, and only {} are free; make room, choose a "
                            "smaller one, or set WERK_HOME to another disk",
                            id_, readable_bytes(needed), folder_.parent_path().string(),
                            readable_bytes(*free)));
  }

  Result<std::string> bring(DownloadPlace& place) {
    folder_ = place.folder();
    const std::uint64_t there_bytes = bytes_there();
    if (Status enough = check_space(there_bytes); !enough) return pass_on(enough);
    done_bytes_ = there_bytes;
    begin_ = around_.now();
    std::string line = fmt::format("[2/3] fetch {} ({})", what(), readable_bytes(total_bytes_));
    if (there_bytes > 0)
      line += fmt::format(", {} are there and read first", readable_bytes(there_bytes));
    say_(Note::line, line);
    model::ImportRequest request;
    for (const HubFile& file : wanted_) {
      auto digest = fetch(file);
      if (!digest) return pass_on(digest);
      if (!digest->empty()) request.known_sha256[local_name(file)] = std::move(*digest);
    }
    say_(Note::line, "[3/3] import");
    auto imported = import_into_store(std::move(request));
    if (!imported) return pass_on(imported);
    place.clear();
    const model::Manifest& manifest = imported->manifest;
    return fmt::format("{} is installed ({}{}{})", manifest.id,
                       readable_bytes(model::total_bytes(manifest)),
                       manifest.licence.empty() ? "" : ", ", manifest.licence);
  }

  std::string what() const {
    const std::string first = one_line(choice_.weights.front().path);
    if (wanted_.size() == 1) return first;
    return fmt::format("{} and {} more", first, wanted_.size() - 1);
  }

  Result<std::string> fetch(const HubFile& file) {
    Downloader::FileOrder order;
    order.url = file_url(pull_.hub, pull_.name.repository, revision_.commit, file.path);
    order.question = {pull_.name.repository, pull_.revision, file.path};
    order.file = &file;
    order.path = folder_ / local_name(file);
    const std::string name = local_name(file);
    order.on_bytes = [this, &name](std::int64_t bytes) {
      const std::int64_t done = static_cast<std::int64_t>(done_bytes_) + bytes;
      done_bytes_ = static_cast<std::uint64_t>(std::max<std::int64_t>(done, 0));
      show_progress(name);
    };
    return downloader_.file(order);
  }

  void show_progress(std::string_view name) {
    const auto elapsed =
        std::chrono::duration_cast<std::chrono::milliseconds>(around_.now() - begin_);
    if (elapsed - shown_at_ < kBetweenLines) return;
    shown_at_ = elapsed;
    say_(Note::progress, meter_.text(one_line(name), done_bytes_, total_bytes_, elapsed));
  }

  Result<model::InstalledModel> import_into_store(model::ImportRequest request) {
    request.path = folder_ / local_name(choice_.weights.front());
    request.id = id_;
    request.aliases = pull_.aliases;
    request.mode = model::ImportMode::move;
    request.source =
        fmt::format("{}/{} at {}", pull_.hub.endpoint, pull_.name.repository, revision_.commit);
    request.licence = revision_.licence;
    request.expected_sha256 = choice_.weights.front().sha256;
    return store_.import_file(request,
                              [this](const model::ImportProgress&) { return around_.go_on(); });
  }

  Error with_what_is_kept(Error error) const {
    const std::uint64_t kept = folder_.empty() ? 0 : bytes_there();
    if (kept == 0) return error;
    if (error.message.ends_with('.')) error.message.pop_back();
    if (kept >= total_bytes_ && error.code != ErrorCode::cancelled) {
      error.message += fmt::format(" (the files are whole, in {})", folder_.string());
      return error;
    }
    error.message += fmt::format("; {} of {} are kept, and the same command goes on from there",
                                 readable_bytes(kept), readable_bytes(total_bytes_));
    return error;
  }

  const HubPull& pull_;
  const Surroundings& around_;
  const Say& say_;
  model::Store store_;
  Downloader downloader_;
  std::string id_;
  HubRevision revision_;
  HubChoice choice_;
  std::vector<HubFile> wanted_;
  fs::path folder_;
  std::uint64_t total_bytes_ = 0;
  std::uint64_t done_bytes_ = 0;
  std::chrono::steady_clock::time_point begin_;
  std::chrono::milliseconds shown_at_{0};
  TransferLine meter_;
};

}  // namespace

Result<std::string> pull_from_hub(const HubPull& pull, const Surroundings& around, const Say& say,
                                  const Patience& patience) {
  return HubRun(pull, around, say, patience).run();
}

}  // namespace werk::app
