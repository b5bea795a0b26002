#include "werk/app/hub_fetch.hpp"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "werk/base/assert.hpp"
#include "werk/base/text.hpp"

namespace werk::app {
namespace {

using model::GoOn;

constexpr int kHopsMax = 10;
constexpr long kConnectSeconds = 30;
constexpr long kBufferBytes = 256 * 1024;
// Of answers whose body nobody reads.
constexpr std::size_t kIgnoredBytesMax = 64 * 1024;
constexpr std::size_t kHeaderBytesMax = 8 * 1024;

struct FreeEasy {
  void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
};
struct FreeList {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
struct FreeUrl {
  void operator()(CURLU* url) const { curl_url_cleanup(url); }
};
using HeaderList = std::unique_ptr<curl_slist, FreeList>;

void append(HeaderList& list, const std::string& line) {
  curl_slist* longer = curl_slist_append(list.get(), line.c_str());
  WERK_ASSERT(longer != nullptr);
  static_cast<void>(list.release());
  list.reset(longer);
}

// Scheme, host and port as the same library reads them that connects; empty for no address.
struct Place {
  std::string scheme;
  std::string host;
  std::string port;
  bool operator==(const Place&) const = default;
};

Place place_of(const std::string& address) {
  const std::unique_ptr<CURLU, FreeUrl> url(curl_url());
  Place place;
  if (!url || curl_url_set(url.get(), CURLUPART_URL, address.c_str(), 0) != CURLUE_OK) return place;
  const auto part = [&url](CURLUPart which, unsigned flags) {
    char* text = nullptr;
    if (curl_url_get(url.get(), which, &text, flags) != CURLUE_OK) return std::string();
    std::string copy = to_lower(text);
    curl_free(text);
    return copy;
  };
  place.scheme = part(CURLUPART_SCHEME, 0);
  place.host = part(CURLUPART_HOST, 0);
  place.port = part(CURLUPART_PORT, CURLU_DEFAULT_PORT);
  return place;
}

std::optional<std::uint64_t> number_of(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// From `RateLimit: "resolvers";r=0;t=55` the 55.
std::optional<std::uint64_t> reset_of_rate_limit(std::string_view text) {
  const std::size_t at = text.find(";t=");
  if (at == std::string_view::npos) return std::nullopt;
  text.remove_prefix(at + 3);
  return number_of(text.substr(0, std::min(text.find(';'), text.size())));
}

void note_header(FetchHead& head, std::string_view line) {
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) return;
  const std::string name = to_lower(trim(line.substr(0, colon)));
  const std::string_view value = trim(line.substr(colon + 1)).substr(0, kHeaderBytesMax);
  const auto wait = [&head](std::optional<std::uint64_t> seconds) {
    // More than a day is as good as never.
    if (seconds) head.retry_after = std::chrono::seconds(std::min<std::uint64_t>(*seconds, 86'400));
  };
  if (name == "content-range") head.content_range = value;
  if (name == "link") head.link = value;
  if (name == "x-error-code") head.error_code = one_line(value);
  if (name == "x-error-message") head.error_message = one_line(value);
  if (name == "retry-after") wait(number_of(value));
  if (name == "ratelimit" && !head.retry_after) wait(reset_of_rate_limit(value));
  if (name == "x-linked-etag") {
    head.linked_digest = to_lower(value);
    std::erase(head.linked_digest, '"');
  }
}

bool is_redirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

FetchFault fault_of(CURLcode code) {
  switch (code) {
    case CURLE_OK: return FetchFault::none;
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_SSL_CONNECT_ERROR: return FetchFault::away;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ENGINE_NOTFOUND:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_URL_MALFORMAT:
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_OUT_OF_MEMORY: return FetchFault::lasting;
    default: return FetchFault::passing;
  }
}

}  // namespace

struct HubFetcher::Curl {
  const HubAccess& hub;
  std::function<GoOn()> go_on;
  Place home;
  std::unique_ptr<CURL, FreeEasy> easy;
  std::array<char, CURL_ERROR_SIZE> reason{};

  // Of the answer that comes in.
  const FetchOrder* order = nullptr;
  FetchHead head;
  bool head_is_whole = false;
  bool shown_head = false;
  bool receiver_stopped = false;
  bool cancelled = false;
  std::size_t ignored_bytes = 0;
  std::string linked_digest;  // as far as any answer on the way said

  Curl(const HubAccess& access, std::function<GoOn()> ask)
      : hub(access), go_on(std::move(ask)), home(place_of(access.endpoint)) {}

  bool stopped() {
    cancelled = cancelled || go_on() == GoOn::stop;
    return cancelled;
  }

  void take_header(std::string_view line) {
    if (!line.starts_with("HTTP/")) {
      head_is_whole = head_is_whole || trim(line).empty();
      note_header(head, line);
      linked_digest = head.linked_digest;
      return;
    }
    // A new answer, after an interim one or a redirect.
    head = FetchHead();
    head_is_whole = false;
    head.linked_digest = linked_digest;
    const std::size_t space = line.find(' ');
    if (space == std::string_view::npos) return;
    head.status = static_cast<int>(number_of(line.substr(space + 1, 3)).value_or(0));
  }

  bool show_head() {
    if (shown_head) return true;
    shown_head = true;
    curl_off_t length = -1;
    curl_easy_getinfo(easy.get(), CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
    if (length >= 0) head.length_bytes = static_cast<std::uint64_t>(length);
    return !order->on_head || order->on_head(head) == GoOn::yes;
  }

  bool take_bytes(std::string_view bytes) {
    if (stopped()) return false;
    if (head.status != 200 && head.status != 206) {
      ignored_bytes += bytes.size();
      return ignored_bytes <= kIgnoredBytesMax;
    }
    const bool wanted = show_head() && (!order->on_bytes || order->on_bytes(bytes) == GoOn::yes);
    receiver_stopped = !wanted;
    return wanted;
  }

  static std::size_t on_header(char* data, std::size_t, std::size_t size, void* self) {
    static_cast<Curl*>(self)->take_header(std::string_view(data, size));
    return size;
  }
  static std::size_t on_body(char* data, std::size_t, std::size_t size, void* self) {
    // Anything but the size ends the transfer.
    return static_cast<Curl*>(self)->take_bytes(std::string_view(data, size)) ? size : size + 1;
  }
  static int on_tick(void* self, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
    return static_cast<Curl*>(self)->stopped() ? 1 : 0;
  }

  template <class Value>
  void set(CURLoption option, Value value) {
    WERK_ASSERT(curl_easy_setopt(easy.get(), option, value) == CURLE_OK);
  }

  void prepare(std::chrono::seconds silence) {
    easy.reset(curl_easy_init());
    WERK_ASSERT(easy != nullptr);
    set(CURLOPT_PROTOCOLS_STR, "http,https");
    set(CURLOPT_FOLLOWLOCATION, 0L);
    set(CURLOPT_SSL_VERIFYPEER, 1L);
    set(CURLOPT_SSL_VERIFYHOST, 2L);
    if (!hub.ca_file.empty()) set(CURLOPT_CAINFO, hub.ca_file.c_str());
    if (!hub.ca_folder.empty()) set(CURLOPT_CAPATH, hub.ca_folder.c_str());
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
    set(CURLOPT_LOW_SPEED_LIMIT, 1L);
    set(CURLOPT_LOW_SPEED_TIME, static_cast<long>(silence.count()));
    set(CURLOPT_BUFFERSIZE, kBufferBytes);
    set(CURLOPT_USERAGENT, "werk");
    set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    set(CURLOPT_ERRORBUFFER, reason.data());
    set(CURLOPT_HEADERFUNCTION, &Curl::on_header);
    set(CURLOPT_HEADERDATA, this);
    set(CURLOPT_WRITEFUNCTION, &Curl::on_body);
    set(CURLOPT_WRITEDATA, this);
    set(CURLOPT_NOPROGRESS, 0L);
    set(CURLOPT_XFERINFOFUNCTION, &Curl::on_tick);
    set(CURLOPT_XFERINFODATA, this);
  }

  // Whether there was a connection, TLS included, to ask on.
  bool began() const {
    curl_off_t microseconds = 0;
    curl_easy_getinfo(easy.get(), CURLINFO_PRETRANSFER_TIME_T, &microseconds);
    return microseconds > 0;
  }

  // One answer, without following it anywhere.
  Fetched hop(const std::string& url) {
    head = FetchHead();
    head_is_whole = false;
    shown_head = false;
    receiver_stopped = false;
    ignored_bytes = 0;
    reason.front() = '\0';
    HeaderList headers;
    append(headers, "Accept-Encoding: identity");
    if (!hub.token.empty() && place_of(url) == home) {
      append(headers, "Authorization: Bearer " + hub.token);
    }
    set(CURLOPT_URL, url.c_str());
    set(CURLOPT_HTTPHEADER, headers.get());
    const std::string range = fmt::format("{}-", order->from_byte);
    set(CURLOPT_RANGE, order->from_byte > 0 ? range.c_str() : nullptr);
    CURLcode code = curl_easy_perform(easy.get());
    set(CURLOPT_HTTPHEADER, nullptr);
    set(CURLOPT_RANGE, nullptr);
    // The library takes a head that breaks off for an answer without a body.
    if (code == CURLE_OK && !head_is_whole) code = CURLE_GOT_NOTHING;
    const bool has_body = head.status == 200 || head.status == 206;
    if (code == CURLE_OK && has_body && !show_head()) receiver_stopped = true;
    // The rest of a body that nobody reads doesn't matter.
    if (code == CURLE_WRITE_ERROR && !has_body && !cancelled) code = CURLE_OK;
    Fetched fetched{head, fault_of(code), {}};
    if (code == CURLE_OPERATION_TIMEDOUT && !began()) fetched.fault = FetchFault::away;
    if (receiver_stopped) fetched.fault = FetchFault::receiver;
    if (cancelled) fetched.fault = FetchFault::cancelled;
    if (fetched.fault != FetchFault::none) {
      fetched.reason = one_line(reason.front() ? reason.data() : curl_easy_strerror(code));
      while (fetched.reason.ends_with('\n') || fetched.reason.ends_with('.')) {
        fetched.reason.pop_back();
      }
    }
    return fetched;
  }
};

HubFetcher::HubFetcher(const HubAccess& hub, std::function<GoOn()> go_on,
                       std::chrono::seconds silence) {
  curl_global_init(CURL_GLOBAL_DEFAULT);
  curl_ = std::make_unique<Curl>(hub, std::move(go_on));
  curl_->prepare(silence);
}

HubFetcher::~HubFetcher() {
  curl_.reset();
  curl_global_cleanup();
}

Fetched HubFetcher::get(const FetchOrder& order) {
  curl_->order = &order;
  curl_->linked_digest.clear();
  std::string url = order.url;
  const auto refuse = [](Fetched fetched, std::string why) {
    fetched.fault = FetchFault::lasting;
    fetched.reason = std::move(why);
    return fetched;
  };
  for (int hops = 0; hops <= kHopsMax; ++hops) {
    Fetched fetched = curl_->hop(url);
    if (fetched.fault != FetchFault::none || !is_redirect(fetched.head.status)) return fetched;
    char* next = nullptr;
    curl_easy_getinfo(curl_->easy.get(), CURLINFO_REDIRECT_URL, &next);
    if (next == nullptr) return refuse(std::move(fetched), "a redirect leads nowhere");
    const std::string target(next);
    const Place place = place_of(target);
    if (place.scheme != "https" && (place.scheme != "http" || place_of(url).scheme == "https")) {
      return refuse(std::move(fetched), fmt::format("a redirect from {} leads to {}, without "
                                                    "encryption; that is not followed",
                                                    place_of(url).host, one_line(place.host)));
    }
    url = target;
  }
  Fetched fetched;
  return refuse(std::move(fetched), fmt::format("more than {} redirects", kHopsMax));
}

}  // namespace werk::app
