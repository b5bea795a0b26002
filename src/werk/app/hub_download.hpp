// Fetches documents and files of a hub to their end: what is cut is asked for again from where it
// stopped, with patience that is bounded unless something comes; a file is digested as it comes and
// gets its name only when it is whole, right and on the disk. What came stays for the next run,
// except where it is wrong. Blocking; one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "werk/app/hub.hpp"
#include "werk/app/hub_fetch.hpp"
#include "werk/app/hub_refusal.hpp"
#include "werk/base/result.hpp"
#include "werk/model/store_files.hpp"

namespace werk::app {

// What fetching asks of the machine and of the person; tests have their own.
struct Surroundings {
  std::function<model::GoOn()> go_on;  // stop: the person ended it
  std::function<model::GoOn(std::chrono::milliseconds)> wait;
  std::function<std::chrono::steady_clock::time_point()> now;
  // Free for this user where the folder lies; none if it can't be told.
  std::function<std::optional<std::uint64_t>(const std::filesystem::path&)> free_bytes;
  std::function<void(std::string_view)> tell;  // a line for the person
  model::WriteHook* hook = nullptr;            // before each write; may be null
};

struct Patience {
  int tries = 6;  // without progress between them
  std::chrono::milliseconds first_wait{1000};
  std::chrono::milliseconds wait_max{30'000};
  std::chrono::seconds retry_after_max{300};  // who is asked to wait longer gives up
  std::uint64_t progress_bytes = 1024 * 1024;
  std::chrono::seconds silence{60};
};

// Counts the tries of one document or file and says how long to wait before the next.
class Tries {
 public:
  explicit Tries(const Patience& patience) : patience_(patience) {}

  // So many bytes came in the last try.
  void came(std::uint64_t bytes);
  // None: it is enough.
  std::optional<std::chrono::milliseconds> next(std::optional<std::chrono::seconds> retry_after);

 private:
  Patience patience_;
  int failed_ = 0;
  std::uint64_t came_bytes_ = 0;  // since the tries were counted from the beginning
};

struct ByteSpan {
  std::uint64_t first = 0;
  std::optional<std::uint64_t> whole_bytes;
};
// "bytes 100-999/1000", or "*" for the whole; none if it is nothing of the kind.
std::optional<ByteSpan> parse_content_range(std::string_view text);

struct Document {
  std::string text;
  std::string link;  // its Link header
};

class Downloader {
 public:
  // What is given must outlive it.
  Downloader(const HubAccess& hub, const Surroundings& around, const Patience& patience);

  Result<Document> document(const std::string& url, const HubQuestion& question);

  struct FileOrder {
    std::string url;
    HubQuestion question;
    const HubFile* file = nullptr;
    std::filesystem::path path;  // when it is whole; until then with ".part" at its end
    // How many more bytes are done; negative when some had to be thrown away.
    std::function<void(std::int64_t bytes)> on_bytes;
  };
  // Gives the file's SHA-256, empty when a file without a listed one was there already. After an
  // error the part that came is kept, or deleted where it can't become the file.
  Result<std::string> file(const FileOrder& order);

 private:
  class Transfer;

  Status after_fault(const Fetched& fetched, const HubQuestion& question, Tries& tries);

  const HubAccess& hub_;
  const Surroundings& around_;
  Patience patience_;
  HubFetcher fetcher_;
  bool has_answered_ = false;
};

// The part of a file that is under way.
std::filesystem::path part_path(const std::filesystem::path& whole);

}  // namespace werk::app
