#include "werk/app/hub_download.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "werk/app/part_file.hpp"
#include "werk/base/text.hpp"

namespace werk::app {
namespace {

namespace fs = std::filesystem;
using model::GoOn;

constexpr std::size_t kDocumentBytesMax = 64 * 1024 * 1024;

std::optional<std::uint64_t> number_of(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

Error stopped() { return Error{ErrorCode::cancelled, "stopped"}; }

}  // namespace

fs::path part_path(const fs::path& whole) {
  fs::path path = whole;
  path += ".part";
  return path;
}

std::optional<ByteSpan> parse_content_range(std::string_view text) {
  constexpr std::string_view kUnit = "bytes ";
  if (!text.starts_with(kUnit)) return std::nullopt;
  text.remove_prefix(kUnit.size());
  const std::size_t dash = text.find('-');
  const std::size_t slash = text.find('/');
  if (dash == std::string_view::npos || slash == std::string_view::npos || slash < dash) {
    return std::nullopt;
  }
  const auto first = number_of(text.substr(0, dash));
  const auto last = number_of(text.substr(dash + 1, slash - dash - 1));
  if (!first || !last || *last < *first) return std::nullopt;
  ByteSpan span{*first, number_of(text.substr(slash + 1))};
  if (!span.whole_bytes && text.substr(slash + 1) != "*") return std::nullopt;
  return span;
}

void Tries::came(std::uint64_t bytes) {
  came_bytes_ += bytes;
  if (came_bytes_ < patience_.progress_bytes) return;
  failed_ = 0;
  came_bytes_ = 0;
}

std::optional<std::chrono::milliseconds> Tries::next(
    std::optional<std::chrono::seconds> retry_after) {
  ++failed_;
  if (failed_ >= patience_.tries) return std::nullopt;
  if (retry_after) {
    if (*retry_after > patience_.retry_after_max) return std::nullopt;
    return std::max(std::chrono::milliseconds(*retry_after), patience_.first_wait);
  }
  std::chrono::milliseconds wait = patience_.first_wait;
  for (int i = 1; i < failed_ && wait < patience_.wait_max; ++i) wait *= 2;
  return std::min(wait, patience_.wait_max);
}

Downloader::Downloader(const HubAccess& hub, const Surroundings& around, const Patience& patience)
    : hub_(hub),
      around_(around),
      patience_(patience),
      fetcher_(hub, around.go_on, patience.silence) {}

// Waits where another try makes sense, else says what is wrong.
Status Downloader::after_fault(const Fetched& fetched, const HubQuestion& question, Tries& tries) {
  if (fetched.fault == FetchFault::cancelled) return fail(stopped());
  const bool below = fetched.fault != FetchFault::none;
  Error error =
      below ? hub_unreachable(hub_, question, fetched) : hub_refusal(hub_, question, fetched.head);
  const bool hopeless = below ? fetched.fault == FetchFault::lasting ||
                                    (fetched.fault == FetchFault::away && !has_answered_)
                              : !may_pass(fetched.head.status);
  if (hopeless) return fail(std::move(error));
  const auto wait = tries.next(below ? std::nullopt : fetched.head.retry_after);
  if (!wait) return fail(std::move(error));
  around_.tell(fmt::format("{}: {}; trying again in {} s",
                           question.file.empty() ? question.repository : question.file,
                           below ? fetched.reason : fmt::format("status {}", fetched.head.status),
                           std::chrono::ceil<std::chrono::seconds>(*wait).count()));
  return around_.wait(*wait) == GoOn::stop ? fail(stopped()) : Status();
}

Result<Document> Downloader::document(const std::string& url, const HubQuestion& question) {
  Tries tries(patience_);
  while (true) {
    Document document;
    FetchOrder order;
    order.url = url;
    order.on_bytes = [&document](std::string_view bytes) {
      if (document.text.size() + bytes.size() > kDocumentBytesMax) return GoOn::stop;
      document.text += bytes;
      return GoOn::yes;
    };
    const Fetched fetched = fetcher_.get(order);
    if (fetched.fault == FetchFault::receiver) {
      return fail(ErrorCode::io, fmt::format("{} answers with more than {}; look at HF_ENDPOINT",
                                             hub_.endpoint, readable_bytes(kDocumentBytesMax)));
    }
    const bool whole = fetched.fault == FetchFault::none;
    if (whole) has_answered_ = true;
    if (whole && fetched.head.status == 200) {
      document.link = fetched.head.link;
      return document;
    }
    if (Status again = after_fault(fetched, question, tries); !again) return pass_on(again);
  }
}

// One file, from what is there to its own name.
class Downloader::Transfer {
 public:
  Transfer(Downloader& of, const FileOrder& order, PartFile part)
      : of_(of), order_(order), file_(*order.file), part_(std::move(part)) {}

  Result<std::string> run() {
    Result<std::string> digest = fetch();
    if (!digest && part_.size_bytes() == 0) part_.remove();
    return digest;
  }

 private:
  Result<std::string> fetch() {
    if (file_.sha256.empty() && part_.size_bytes() > 0) {
      // Nothing would tell whether two parts belong together.
      if (Status cleared = clear(); !cleared) return pass_on(cleared);
    }
    Status read = part_.digest_present(of_.around_.go_on);
    if (!read) return pass_on(read);
    Tries tries(of_.patience_);
    while (part_.size_bytes() < file_.size_bytes) {
      if (Status came = once(tries); !came) return pass_on(came);
    }
    return finish();
  }

  // One try. Succeeds when another one, or the end, is due.
  Status once(Tries& tries) {
    const std::uint64_t before_bytes = part_.size_bytes();
    trouble_.reset();
    wrong_range_ = false;
    FetchOrder fetch;
    fetch.url = order_.url;
    fetch.from_byte = before_bytes;
    fetch.on_head = [this](const FetchHead& head) { return take_head(head); };
    fetch.on_bytes = [this](std::string_view bytes) { return take_bytes(bytes); };
    Fetched fetched = of_.fetcher_.get(fetch);
    if (fetched.fault == FetchFault::none) of_.has_answered_ = true;
    if (trouble_) return fail(std::move(*trouble_));
    if (part_.size_bytes() == file_.size_bytes) return {};
    if (part_.size_bytes() > before_bytes) tries.came(part_.size_bytes() - before_bytes);
    if (wrong_range_ || fetched.head.status == 416) {
      if (Status cleared = clear(); !cleared) return cleared;
      fetched.fault = FetchFault::passing;
      fetched.reason = "it gives another part of the file than it was asked for";
    }
    const bool ended = fetched.head.status == 200 || fetched.head.status == 206;
    if (fetched.fault == FetchFault::none && ended) {
      fetched.fault = FetchFault::passing;
      fetched.reason =
          fmt::format("it ended after {} of {} bytes", part_.size_bytes(), file_.size_bytes);
    }
    return of_.after_fault(fetched, order_.question, tries);
  }

  GoOn refuse(Error error) {
    trouble_ = std::move(error);
    return GoOn::stop;
  }
  GoOn other_size(std::uint64_t bytes) {
    return refuse({ErrorCode::io, fmt::format("the hub lists {} with {} bytes and gives {}; try "
                                              "again later",
                                              one_line(file_.path), file_.size_bytes, bytes)});
  }

  GoOn take_head(const FetchHead& head) {
    if (!file_.sha256.empty() && head.linked_digest.size() == file_.sha256.size() &&
        head.linked_digest != file_.sha256) {
      return refuse(
          {ErrorCode::io, fmt::format("the hub lists {} with the SHA-256 {} and gives a "
                                      "file of {}; try again later",
                                      one_line(file_.path), file_.sha256, head.linked_digest)});
    }
    if (head.status == 200) {
      if (head.length_bytes && *head.length_bytes != file_.size_bytes) {
        return other_size(*head.length_bytes);
      }
      // The whole instead of the rest.
      if (part_.size_bytes() > 0) {
        if (Status cleared = clear(); !cleared) return refuse(std::move(cleared.error()));
      }
      return GoOn::yes;
    }
    const auto span = parse_content_range(head.content_range);
    if (!span || span->first != part_.size_bytes()) {
      wrong_range_ = true;
      return GoOn::stop;
    }
    if (span->whole_bytes && *span->whole_bytes != file_.size_bytes) {
      return other_size(*span->whole_bytes);
    }
    return GoOn::yes;
  }

  GoOn take_bytes(std::string_view bytes) {
    if (bytes.size() > file_.size_bytes - part_.size_bytes()) {
      return other_size(part_.size_bytes() + bytes.size());
    }
    if (Status written = part_.append(bytes); !written) return refuse(std::move(written.error()));
    tell(static_cast<std::int64_t>(bytes.size()));
    return GoOn::yes;
  }

  Status clear() {
    const auto there = static_cast<std::int64_t>(part_.size_bytes());
    if (Status cleared = part_.clear(); !cleared) return cleared;
    tell(-there);
    return {};
  }

  void tell(std::int64_t bytes) const {
    if (order_.on_bytes) order_.on_bytes(bytes);
  }

  Result<std::string> finish() {
    std::string digest = part_.finish_digest();
    if (!file_.sha256.empty() && digest != file_.sha256) {
      part_.remove();
      return fail(ErrorCode::io,
                  fmt::format("{} came damaged: its SHA-256 is {} instead of {}. It was deleted; "
                              "pull it again",
                              one_line(file_.path), digest, file_.sha256));
    }
    if (Status published = part_.publish(order_.path); !published) return pass_on(published);
    return digest;
  }

  Downloader& of_;
  const FileOrder& order_;
  const HubFile& file_;
  PartFile part_;
  std::optional<Error> trouble_;
  bool wrong_range_ = false;
};

Result<std::string> Downloader::file(const FileOrder& order) {
  std::error_code error;
  if (fs::exists(order.path, error)) {
    // It got its name when it was whole and right.
    if (fs::file_size(order.path, error) == order.file->size_bytes && !error) {
      return order.file->sha256;
    }
    fs::remove(order.path, error);
  }
  auto part = PartFile::open(part_path(order.path), order.file->size_bytes, around_.hook);
  if (!part) return pass_on(part);
  return Transfer(*this, order, std::move(*part)).run();
}

}  // namespace werk::app
