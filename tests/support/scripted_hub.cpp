#include "tests/support/scripted_hub.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <csignal>
#include <list>
#include <map>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "tests/support/loopback_listener.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/test_certificate.hpp"
#include "werk/base/digest.hpp"
#include "werk/base/text.hpp"

namespace werk::test {
namespace {

struct StoredFile {
  std::string content;
  std::string listed_sha256;  // or empty
  std::uint64_t listed_bytes = 0;
};

struct Waiting {
  std::string target_part;
  HubEvent event;
};

// One accepted connection, plain or with TLS.
class Wire {
 public:
  Wire(int socket, SSL_CTX* context) : socket_(socket) {
    if (context != nullptr) {
      tls_.reset(SSL_new(context));
      SSL_set_fd(tls_.get(), socket_);
    }
  }
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;
  ~Wire() { ::close(socket_); }

  bool greet() { return !tls_ || SSL_accept(tls_.get()) == 1; }
  bool read_some(std::string& into) {
    char buffer[4096];
    const auto count = tls_ ? SSL_read(tls_.get(), buffer, sizeof buffer)
                            : static_cast<int>(::recv(socket_, buffer, sizeof buffer, 0));
    if (count <= 0) return false;
    into.append(buffer, static_cast<std::size_t>(count));
    return true;
  }
  bool write_all(std::string_view bytes) {
    while (!bytes.empty()) {
      const auto size = std::min<std::size_t>(bytes.size(), 16 * 1024);
      const auto count = tls_ ? SSL_write(tls_.get(), bytes.data(), static_cast<int>(size))
                              : static_cast<int>(::send(socket_, bytes.data(), size, MSG_NOSIGNAL));
      if (count <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(count));
    }
    return true;
  }
  void shut() const { ::shutdown(socket_, SHUT_RDWR); }

 private:
  struct Free {
    void operator()(SSL* tls) const { SSL_free(tls); }
  };
  int socket_;
  std::unique_ptr<SSL, Free> tls_;
};

std::string answer_text(int status, const std::vector<std::string>& headers,
                        std::string_view body) {
  std::string text = fmt::format("HTTP/1.1 {} Said\r\n", status);
  bool is_chunked = false;
  for (const std::string& header : headers) {
    text += header + "\r\n";
    is_chunked = is_chunked || header.starts_with("Transfer-Encoding");
  }
  if (!is_chunked) text += fmt::format("Content-Length: {}\r\n", body.size());
  text += "\r\n";
  text += body;
  return text;
}

std::string header_of(std::string_view head, std::string_view name) {
  for (std::size_t at = 0; at < head.size();) {
    const std::size_t end = std::min(head.find("\r\n", at), head.size());
    const std::string_view line = head.substr(at, end - at);
    const std::size_t colon = line.find(':');
    if (colon != std::string_view::npos && equals_ignoring_case(line.substr(0, colon), name)) {
      return std::string(trim(line.substr(colon + 1)));
    }
    at = end + 2;
  }
  return {};
}

}  // namespace

class ScriptedHub::Server {
 public:
  explicit Server(HubWire wire) : wire_(wire) {
    std::signal(SIGPIPE, SIG_IGN);
    if (wire == HubWire::tls) certificate_.emplace(folder_.path());
    listeners_[0] = listen_on_loopback(ports_[0]);
    listeners_[1] = listen_on_loopback(ports_[1]);
    for (const int which : {0, 1})
      acceptors_[which] = std::thread([this, which] { accept(which); });
  }
  ~Server() {
    {
      const std::lock_guard guard(mutex_);
      ending_ = true;
      for (const auto& wire : wires_) wire->shut();
    }
    changed_.notify_all();
    for (const int listener : listeners_) ::shutdown(listener, SHUT_RDWR);
    for (std::thread& acceptor : acceptors_) acceptor.join();
    for (std::thread& thread : threads_) thread.join();
    for (const int listener : listeners_) ::close(listener);
  }

  std::string address(int which) const {
    return fmt::format("{}://127.0.0.1:{}", wire_ == HubWire::tls ? "https" : "http",
                       ports_[which]);
  }

  // The right answer.
  std::string answer(bool at_content_host, const std::string& target, std::string_view head) const {
    if (at_content_host) return content(target, head);
    if (!token_.empty() && header_of(head, "Authorization") != "Bearer " + token_) {
      return answer_text(401, {"X-Error-Message: Invalid username or password."}, "{}");
    }
    const std::string revision = hub_revision_target("");
    if (target.starts_with(revision)) return about(target.substr(revision.size()));
    if (target.starts_with(hub_tree_target())) return listing(target);
    const std::string file = hub_file_target("");
    if (target.starts_with(file)) return redirect(target.substr(file.size()));
    return answer_text(404, {"X-Error-Code: RepoNotFound"}, R"({"error":"Repository not found"})");
  }

  const HubWire wire_;
  TemporaryFolder folder_;
  std::optional<TestCertificate> certificate_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::map<std::string, StoredFile> files_;
  std::string token_;
  HubRanges ranges_ = HubRanges::honoured;
  std::size_t page_entries_ = 1000;
  std::list<Waiting> waiting_;
  std::list<Waiting> standing_;
  std::vector<HubRequest> requests_;
  std::size_t released_ = 0;
  std::size_t holding_ = 0;

 private:
  static std::string about(std::string_view revision) {
    if (revision != "main" && revision != kHubCommit && revision != "refs%2Fpr%2F1") {
      return answer_text(404, {"X-Error-Code: RevisionNotFound"}, "{}");
    }
    return answer_text(200, {"Content-Type: application/json"},
                       fmt::format(R"({{"id":"{}","sha":"{}","private":false,"gated":false,)"
                                   R"("cardData":{{"license":"apache-2.0"}}}})",
                                   kHubRepository, kHubCommit));
  }

  std::string listing(const std::string& target) const {
    std::size_t begin = 0;
    const std::size_t cursor = target.find("&cursor=");
    if (cursor != std::string::npos) begin = std::stoul(target.substr(cursor + 8));
    std::string body = "[";
    std::size_t index = 0;
    for (const auto& [path, file] : files_) {
      if (index++ < begin || index > begin + page_entries_) continue;
      if (body.size() > 1) body += ",";
      body += fmt::format(R"({{"type":"file","oid":"aa","size":{},"path":"{}")", file.listed_bytes,
                          path);
      if (!file.listed_sha256.empty()) {
        body += fmt::format(R"(,"lfs":{{"oid":"{}","size":{},"pointerSize":134}})",
                            file.listed_sha256, file.listed_bytes);
      }
      body += "}";
    }
    body += R"(,{"type":"directory","oid":"bb","size":0,"path":"folder"}])";
    if (body.starts_with("[,")) body.erase(1, 1);
    std::vector<std::string> headers = {"Content-Type: application/json"};
    if (files_.size() > begin + page_entries_) {
      // As a mirror does: the address is that of the hub it mirrors.
      headers.push_back(
          fmt::format("Link: <https://hub.invalid{}?recursive=true&cursor={}>; "
                      "rel=\"next\"",
                      hub_tree_target(), begin + page_entries_));
    }
    return answer_text(200, headers, body);
  }

  std::string redirect(const std::string& path) const {
    const auto found = files_.find(path);
    if (found == files_.end()) return answer_text(404, {"X-Error-Code: EntryNotFound"}, "");
    const std::string digest = sha256_hex(found->second.content);
    std::vector<std::string> headers = {
        "Location: " + address(1) + hub_blob_target(digest),
        fmt::format("X-Repo-Commit: {}", kHubCommit),
        fmt::format("X-Linked-Size: {}", found->second.content.size())};
    if (found->second.listed_sha256 == digest) {
      headers.push_back(fmt::format("X-Linked-Etag: \"{}\"", digest));
    }
    return answer_text(302, headers, "Found. Redirecting");
  }

  std::string content(const std::string& target, std::string_view head) const {
    for (const auto& [path, file] : files_) {
      if (target != hub_blob_target(sha256_hex(file.content))) continue;
      const std::string range = header_of(head, "Range");
      if (range.empty() || ranges_ == HubRanges::ignored) {
        return answer_text(200, {"Accept-Ranges: bytes"}, file.content);
      }
      if (ranges_ == HubRanges::refused) return answer_text(416, {}, "");
      std::size_t first = std::stoul(range.substr(6));
      if (ranges_ == HubRanges::shifted && first > 0) --first;
      if (first >= file.content.size()) return answer_text(416, {}, "");
      return answer_text(206,
                         {fmt::format("Content-Range: bytes {}-{}/{}", first,
                                      file.content.size() - 1, file.content.size())},
                         file.content.substr(first));
    }
    return answer_text(404, {}, "");
  }

  void accept(int which) {
    while (true) {
      const int socket = ::accept4(listeners_[which], nullptr, nullptr, SOCK_CLOEXEC);
      const std::lock_guard guard(mutex_);
      if (ending_ || socket < 0) {
        if (socket >= 0) ::close(socket);
        return;
      }
      const auto wire =
          std::make_shared<Wire>(socket, certificate_ ? certificate_->context() : nullptr);
      wires_.push_back(wire);
      threads_.emplace_back([this, wire, which] { serve(*wire, which == 1); });
    }
  }

  void serve(Wire& wire, bool at_content_host) {
    std::string bytes;
    bool open = wire.greet();
    while (open) {
      const std::size_t end = bytes.find("\r\n\r\n");
      if (end == std::string::npos) {
        open = wire.read_some(bytes);
        // No request begins so: a client that wants TLS here.
        if (!bytes.empty() && bytes.front() == '\x16') open = false;
        continue;
      }
      const std::string head = bytes.substr(0, end + 2);
      bytes.erase(0, end + 4);
      open = respond(wire, at_content_host, head);
    }
    wire.shut();
  }

  // Whether the connection goes on.
  bool respond(Wire& wire, bool at_content_host, const std::string& head) {
    const std::size_t begin = head.find(' ') + 1;
    const std::string target = head.substr(begin, head.find(' ', begin) - begin);
    std::unique_lock lock(mutex_);
    requests_.push_back({at_content_host, target, head});
    const HubEvent event = event_for(target);
    const std::string text = event.status == 0
                                 ? answer(at_content_host, target, head)
                                 : answer_text(event.status, event.headers, event.body);
    lock.unlock();
    if (event.cut_after) {
      wire.write_all(std::string_view(text).substr(0, *event.cut_after));
      return false;
    }
    if (!event.hold_after) return wire.write_all(text);
    const std::size_t first = std::min(*event.hold_after, text.size());
    if (!wire.write_all(std::string_view(text).substr(0, first))) return false;
    lock.lock();
    ++holding_;
    changed_.notify_all();
    const std::size_t turn = holding_;
    changed_.wait(lock, [&] { return ending_ || released_ >= turn; });
    lock.unlock();
    return wire.write_all(std::string_view(text).substr(first));
  }

  HubEvent event_for(const std::string& target) {
    for (auto it = waiting_.begin(); it != waiting_.end(); ++it) {
      if (!target.contains(it->target_part)) continue;
      HubEvent event = it->event;
      waiting_.erase(it);
      return event;
    }
    for (const Waiting& standing : standing_) {
      if (target.contains(standing.target_part)) return standing.event;
    }
    return {};
  }

  std::uint16_t ports_[2] = {};
  int listeners_[2] = {};
  std::thread acceptors_[2];
  bool ending_ = false;
  std::vector<std::shared_ptr<Wire>> wires_;
  std::vector<std::thread> threads_;
};

bool HubRequest::has_token() const { return !header_of(head, "Authorization").empty(); }

ScriptedHub::ScriptedHub(HubWire wire) : server_(std::make_unique<Server>(wire)) {}
ScriptedHub::~ScriptedHub() = default;

std::string ScriptedHub::address() const { return server_->address(0); }
std::string ScriptedHub::content_address() const { return server_->address(1); }
std::filesystem::path ScriptedHub::certificate() const { return server_->certificate_->file(); }

void ScriptedHub::add_file(const std::string& path, std::string content) {
  const std::lock_guard guard(server_->mutex_);
  const std::string digest = sha256_hex(content);
  const std::uint64_t size_bytes = content.size();
  server_->files_[path] = {std::move(content), digest, size_bytes};
}
void ScriptedHub::list_wrongly(const std::string& path, std::string sha256,
                               std::uint64_t size_bytes) {
  const std::lock_guard guard(server_->mutex_);
  server_->files_[path].listed_sha256 = std::move(sha256);
  server_->files_[path].listed_bytes = size_bytes;
}
void ScriptedHub::list_without_digest(const std::string& path) {
  const std::lock_guard guard(server_->mutex_);
  server_->files_[path].listed_sha256.clear();
}
void ScriptedHub::require_token(std::string token) {
  const std::lock_guard guard(server_->mutex_);
  server_->token_ = std::move(token);
}
void ScriptedHub::set_ranges(HubRanges ranges) {
  const std::lock_guard guard(server_->mutex_);
  server_->ranges_ = ranges;
}
void ScriptedHub::set_page_entries(std::size_t entries) {
  const std::lock_guard guard(server_->mutex_);
  server_->page_entries_ = entries;
}

void ScriptedHub::next(std::string_view target_part, HubEvent event) {
  const std::lock_guard guard(server_->mutex_);
  server_->waiting_.push_back({std::string(target_part), std::move(event)});
}
void ScriptedHub::always(std::string_view target_part, HubEvent event) {
  const std::lock_guard guard(server_->mutex_);
  server_->standing_.push_back({std::string(target_part), std::move(event)});
}
void ScriptedHub::release() {
  const std::lock_guard guard(server_->mutex_);
  server_->released_ = server_->holding_;
  server_->changed_.notify_all();
}

std::vector<HubRequest> ScriptedHub::requests() const {
  const std::lock_guard guard(server_->mutex_);
  return server_->requests_;
}
std::vector<HubRequest> ScriptedHub::requests_for(std::string_view target_part) const {
  std::vector<HubRequest> found;
  for (HubRequest& one : requests()) {
    if (one.target.contains(target_part)) found.push_back(std::move(one));
  }
  return found;
}

void ScriptedHub::wait_for_hold() const {
  std::unique_lock lock(server_->mutex_);
  const bool held = server_->changed_.wait_for(
      lock, std::chrono::seconds(30), [this] { return server_->holding_ > server_->released_; });
  if (!held) throw std::runtime_error("nothing came to the hub that was to be held");
}

std::size_t ScriptedHub::answer_bytes(const std::string& target, bool at_content_host) const {
  const std::lock_guard guard(server_->mutex_);
  return server_->answer(at_content_host, target, "").size();
}

std::string hub_revision_target(std::string_view revision) {
  return fmt::format("/api/models/{}/revision/{}", kHubRepository, revision);
}
std::string hub_tree_target() {
  return fmt::format("/api/models/{}/tree/{}", kHubRepository, kHubCommit);
}
std::string hub_file_target(std::string_view path) {
  return fmt::format("/{}/resolve/{}/{}", kHubRepository, kHubCommit, path);
}
std::string hub_blob_target(std::string_view sha256) {
  return fmt::format("/blob/{}?signature=x", sha256);
}

}  // namespace werk::test
