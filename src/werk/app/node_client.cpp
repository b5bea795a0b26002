#include "werk/app/node_client.hpp"

#include <curl/curl.h>
#include <fmt/format.h>

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <memory>

#include "werk/base/text.hpp"
#include "werk/process/interrupt.hpp"
#include "werk/process/node_lock.hpp"

namespace werk::app {

namespace json = boost::json;

namespace {

constexpr std::size_t kBodyBytesMax = std::size_t{64} << 20;
constexpr std::size_t kErrorBytesMax = std::size_t{64} << 10;
constexpr long kConnectMs = 3000;
constexpr int kPollMs = 1000;
constexpr std::string_view kNobody =
    "no node serves this home; `werk serve` starts one (--url names one elsewhere)";

struct EasyDeleter {
  void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
};
struct MultiDeleter {
  void operator()(CURLM* multi) const { curl_multi_cleanup(multi); }
};
struct ListDeleter {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using Easy = std::unique_ptr<CURL, EasyDeleter>;
using Multi = std::unique_ptr<CURLM, MultiDeleter>;
using List = std::unique_ptr<curl_slist, ListDeleter>;

// One answer as it arrives: an error's text is gathered, a good answer's handed on.
struct Incoming {
  CURL* easy = nullptr;
  const NodeClient::OnPiece* on_piece = nullptr;
  std::string refusal;
  bool given_up = false;

  long status() const {
    long code = 0;
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &code);
    return code;
  }
};

bool is_good(long status) { return status >= 200 && status < 300; }

std::size_t on_body(char* bytes, std::size_t, std::size_t count, void* self) {
  auto& incoming = *static_cast<Incoming*>(self);
  const std::string_view piece(bytes, count);
  if (!is_good(incoming.status())) {
    incoming.refusal.append(piece.substr(0, kErrorBytesMax - incoming.refusal.size()));
    return count;
  }
  if ((*incoming.on_piece)(piece) == NodeClient::GoOn::yes) return count;
  incoming.given_up = true;
  return 0;
}

void add(List& list, const std::string& header) {
  curl_slist* longer = curl_slist_append(list.get(), header.c_str());
  if (longer == nullptr) return;
  [[maybe_unused]] auto* same = list.release();
  list.reset(longer);
}

ErrorCode code_of(long status) {
  switch (status) {
    case 400: return ErrorCode::invalid_request;
    case 401: return ErrorCode::unauthorized;
    case 403: return ErrorCode::forbidden;
    case 404: return ErrorCode::not_found;
    case 409: return ErrorCode::conflict;
    case 429: return ErrorCode::queue_full;
    case 503: return ErrorCode::capacity;
    default: return ErrorCode::engine_failed;
  }
}

// The code that the node itself names; what has no name of ours follows from the status.
ErrorCode code_of(std::string_view name, long status) {
  for (int code = 0; code <= static_cast<int>(ErrorCode::internal); ++code) {
    if (name_of(static_cast<ErrorCode>(code)) == name) return static_cast<ErrorCode>(code);
  }
  return code_of(status);
}

// A text member of an error in either dialect's envelope.
std::string told(const json::value& page, std::string_view pointer) {
  boost::system::error_code error;
  const json::value* text = page.find_pointer(pointer, error);
  return text != nullptr && text->is_string() ? printable(text->as_string()) : std::string();
}

Error refusal_of(const Incoming& incoming, const NodeAddress& address) {
  const long status = incoming.status();
  boost::system::error_code error;
  const json::value page = json::parse(incoming.refusal, error);
  std::string message = told(page, "/error/message");
  if (message.empty()) message = fmt::format("{} answered with status {}", address.url, status);
  if (status == 401) message += " (WERK_API_KEY holds the key that is sent)";
  return {code_of(told(page, "/error/code"), status), std::move(message)};
}

void set_up(CURL* easy, const NodeRequest& request, const NodeAddress& address,
            const List& headers) {
  curl_easy_setopt(easy, CURLOPT_URL, (address.url + request.target).c_str());
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, kConnectMs);
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers.get());
  if (address.way == Way::direct) curl_easy_setopt(easy, CURLOPT_NOPROXY, "*");
  if (request.silence_max.count() > 0) {
    curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, static_cast<long>(request.silence_max.count()));
  }
  if (request.method == "POST") {
    curl_easy_setopt(easy, CURLOPT_POST, 1L);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, request.body.c_str());
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE,
                     static_cast<curl_off_t>(request.body.size()));
  }
}

List headers_of(const NodeRequest& request, const NodeAddress& address) {
  List headers;
  add(headers, "Expect:");  // curl's own question before a longer body costs a second in vain
  if (request.method == "POST") add(headers, "Content-Type: application/json");
  if (!address.key.empty()) add(headers, "Authorization: Bearer " + address.key);
  for (const std::string& header : request.headers) add(headers, header);
  return headers;
}

// Runs the transfer to its end or to a signal.
Result<CURLcode> perform(CURLM* multi, process::Interrupt& interrupt,
                         const std::function<void()>& on_wait) {
  int running = 1;
  while (running > 0) {
    if (curl_multi_perform(multi, &running) != CURLM_OK)
      return fail(ErrorCode::io, "the request could not be carried out");
    if (running == 0) break;
    curl_waitfd signal{interrupt.descriptor(), CURL_WAIT_POLLIN, 0};
    const unsigned descriptors = interrupt.descriptor() < 0 ? 0 : 1;
    curl_multi_poll(multi, &signal, descriptors, kPollMs, nullptr);
    if (interrupt.take() != 0) return fail(ErrorCode::cancelled, "stopped");
    if (on_wait) on_wait();
  }
  int left = 0;
  const CURLMsg* message = curl_multi_info_read(multi, &left);
  return message == nullptr ? CURLE_OK : message->data.result;
}

void receive(CURL* easy, Incoming& incoming, std::string& reason) {
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, &incoming);
  curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, reason.data());
}

Status outcome_of(CURLcode code, const Incoming& incoming, const std::string& reason,
                  const NodeAddress& address) {
  if (incoming.given_up) return fail(ErrorCode::cancelled, "stopped");
  const long status = incoming.status();
  if (code != CURLE_OK) {
    const std::string why = reason.front() == '\0' ? curl_easy_strerror(code) : reason.c_str();
    return fail(ErrorCode::io, fmt::format("{} {}: {}", address.url,
                                           status == 0 ? "can't be reached" : "broke off", why));
  }
  if (!is_good(status)) return fail(refusal_of(incoming, address));
  return {};
}

std::string own_key(const Settings& settings) {
  return settings.keys.empty() ? std::string() : settings.keys.front();
}

}  // namespace

std::optional<NodeAddress> home_node(const Settings& settings, const std::filesystem::path& home) {
  const auto running = process::NodeLock::running(home.string());
  if (!running) return std::nullopt;
  return NodeAddress{reachable_here(running->address), own_key(settings), Way::direct};
}

Result<NodeAddress> find_node(const std::string& url, const Settings& settings,
                              const std::filesystem::path& home, std::string_view option) {
  if (url.empty()) {
    auto own = home_node(settings, home);
    if (own) return std::move(*own);
    return fail(ErrorCode::not_found, std::string(kNobody));
  }
  if (!url.starts_with("http://") && !url.starts_with("https://")) {
    return fail(
        ErrorCode::invalid_request,
        fmt::format("{} takes http://HOST:PORT or https://..., not {}", option, printable(url)));
  }
  std::string base = url;
  while (base.ends_with('/')) base.pop_back();
  return NodeAddress{std::move(base), own_key(settings), Way::by_environment};
}

Status NodeClient::stream(const NodeRequest& request, const OnPiece& on_piece) const {
  const Easy easy(curl_easy_init());
  const Multi multi(curl_multi_init());
  if (!easy || !multi) return fail(ErrorCode::io, "libcurl could not be set up");
  const List headers = headers_of(request, address_);
  set_up(easy.get(), request, address_, headers);
  Incoming incoming{easy.get(), &on_piece, {}, false};
  std::string reason(CURL_ERROR_SIZE, '\0');
  receive(easy.get(), incoming, reason);
  process::Interrupt interrupt;
  curl_multi_add_handle(multi.get(), easy.get());
  Result<CURLcode> ended = perform(multi.get(), interrupt, request.on_wait);
  curl_multi_remove_handle(multi.get(), easy.get());
  if (!ended) return pass_on(ended);
  return outcome_of(*ended, incoming, reason, address_);
}

Result<std::string> NodeClient::ask(const NodeRequest& request) const {
  std::string body;
  Status asked = stream(request, [&](std::string_view piece) {
    if (body.size() + piece.size() > kBodyBytesMax) return GoOn::no;
    body += piece;
    return GoOn::yes;
  });
  if (!asked) return pass_on(asked);
  return body;
}

// ---- several at once

struct NodeCalls::Transfers {
  Multi curl = Multi(curl_multi_init());
};

// Stays where it is: libcurl holds pointers into it.
struct NodeCalls::Call {
  NodeAddress address;
  NodeRequest request;
  OnEnd on_end;
  Easy easy = Easy(curl_easy_init());
  List headers = {};
  std::string body = {};
  NodeClient::OnPiece on_piece = {};
  Incoming incoming = {};
  std::string reason = std::string(CURL_ERROR_SIZE, '\0');
  bool ended = false;
  Result<std::string> outcome = {};
};

NodeCalls::NodeCalls() : transfers_(std::make_unique<Transfers>()) {}

NodeCalls::~NodeCalls() {
  for (Call& call : calls_) curl_multi_remove_handle(transfers_->curl.get(), call.easy.get());
}

void NodeCalls::begin(const NodeAddress& address, NodeRequest request, OnEnd on_end) {
  Call& call = calls_.emplace_back(Call{address, std::move(request), std::move(on_end)});
  call.headers = headers_of(call.request, call.address);
  call.on_piece = [&call](std::string_view piece) {
    if (call.body.size() + piece.size() > kBodyBytesMax) return NodeClient::GoOn::no;
    call.body += piece;
    return NodeClient::GoOn::yes;
  };
  CURL* easy = call.easy.get();
  call.incoming.easy = easy;
  call.incoming.on_piece = &call.on_piece;
  set_up(easy, call.request, call.address, call.headers);
  receive(easy, call.incoming, call.reason);
  // A name that is still being looked up holds up nobody's end.
  curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
  curl_easy_setopt(easy, CURLOPT_PRIVATE, &call);
  if (curl_multi_add_handle(transfers_->curl.get(), easy) == CURLM_OK) return;
  call.ended = true;
  call.outcome = fail(ErrorCode::io, "the request could not be carried out");
}

void NodeCalls::turn(std::span<const int> descriptors, std::chrono::milliseconds at_most) {
  CURLM* multi = transfers_->curl.get();
  std::vector<curl_waitfd> waits;
  for (const int descriptor : descriptors) waits.push_back({descriptor, CURL_WAIT_POLLIN, 0});
  int running = 0;
  curl_multi_perform(multi, &running);
  // Nothing is waited for where one has ended already.
  const bool none_ended = running == static_cast<int>(calls_.size());
  curl_multi_poll(multi, waits.data(), static_cast<unsigned>(waits.size()),
                  none_ended ? static_cast<int>(at_most.count()) : 0, nullptr);
  curl_multi_perform(multi, &running);
  finish();
}

void NodeCalls::finish() {
  int left = 0;
  while (const CURLMsg* message = curl_multi_info_read(transfers_->curl.get(), &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    const CURLcode code = message->data.result;
    Call* call = nullptr;
    curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &call);
    const Status ended = outcome_of(code, call->incoming, call->reason, call->address);
    curl_multi_remove_handle(transfers_->curl.get(), call->easy.get());
    call->ended = true;
    if (ended) {
      call->outcome = std::move(call->body);
    } else {
      call->outcome = fail(ended.error());
    }
  }
  // Whoever is called may begin another.
  std::list<Call> ended;
  for (auto call = calls_.begin(); call != calls_.end();) {
    const auto one = call++;
    if (one->ended) ended.splice(ended.end(), calls_, one);
  }
  for (Call& call : ended) call.on_end(std::move(call.outcome));
}

std::string reachable_here(std::string url) {
  for (const auto& [everywhere, here] :
       {std::pair<std::string_view, std::string_view>{"//0.0.0.0:", "//127.0.0.1:"},
        {"//[::]:", "//[::1]:"}}) {
    const std::size_t at = url.find(everywhere);
    if (at != std::string::npos) url.replace(at, everywhere.size(), here);
  }
  return url;
}

std::string path_segment(std::string_view text) {
  constexpr std::string_view kUnreserved =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
  std::string escaped;
  for (const char c : text) {
    if (kUnreserved.find(c) != std::string_view::npos) {
      escaped += c;
    } else {
      escaped += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return escaped;
}

}  // namespace werk::app
