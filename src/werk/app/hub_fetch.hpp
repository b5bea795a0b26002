// HTTP GET over libcurl, as pulling needs it: redirects followed by hand so that the hub's token
// goes to the hub's own scheme, host and port and nowhere else, TLS always verified, never from
// https on to http, proxies as the environment says. One object keeps its connections for all
// requests of a pull. Blocking; one thread. Its source is the only file of Werk that knows libcurl.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "werk/app/hub.hpp"
#include "werk/model/store_files.hpp"

namespace werk::app {

// What the last answer's head said, and what an answer on the way there said of the file itself.
struct FetchHead {
  int status = 0;
  std::optional<std::uint64_t> length_bytes;  // of the body to come
  std::string content_range;
  std::string link;
  std::optional<std::chrono::seconds> retry_after;
  std::string error_code;     // X-Error-Code: "GatedRepo", "RepoNotFound", "RevisionNotFound", ...
  std::string error_message;  // X-Error-Message
  std::string linked_digest;  // X-Linked-Etag without its quotes
};

enum class FetchFault : std::uint8_t {
  none,       // the answer came whole, whatever its status
  passing,    // cut or silent: another try may work
  away,       // nobody could be reached, or nobody who speaks TLS
  lasting,    // refused by TLS, a wrong address, a redirect that is not followed
  cancelled,  // the person ended it
  receiver,   // a callback wanted no more
};

struct Fetched {
  FetchHead head;
  FetchFault fault = FetchFault::none;
  std::string reason;  // of a fault, a sentence without an end
};

struct FetchOrder {
  std::string url;
  std::uint64_t from_byte = 0;  // asked for as a range
  // Before the first byte of a body with status 200 or 206, and then with each piece. Bodies of
  // other answers are not shown.
  std::function<model::GoOn(const FetchHead&)> on_head;
  std::function<model::GoOn(std::string_view)> on_bytes;
};

class HubFetcher {
 public:
  // `hub` must outlive it. `go_on` is asked about once a second and with each piece. An answer that
  // is silent for `silence` is cut.
  HubFetcher(const HubAccess& hub, std::function<model::GoOn()> go_on,
             std::chrono::seconds silence = std::chrono::seconds(60));
  ~HubFetcher();
  HubFetcher(const HubFetcher&) = delete;
  HubFetcher& operator=(const HubFetcher&) = delete;

  Fetched get(const FetchOrder& order);

 private:
  struct Curl;
  std::unique_ptr<Curl> curl_;
};

}  // namespace werk::app
