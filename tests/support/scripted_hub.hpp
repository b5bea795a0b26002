// ScriptedHub: a model hub on loopback that speaks Hugging Face's protocol well enough for pulling:
// one repository, its API, and files that are redirected to another host (a second port). Answers
// can be replaced, cut or held, ranges ignored; it remembers every request and who sent the token
// where. With TLS it makes a certificate of its own, whose file clients must trust. Threads serve
// it, since its clients block; owned by one test, whose thread calls it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace werk::test {

inline constexpr std::string_view kHubRepository = "org/Tiny-GGUF";
inline constexpr std::string_view kHubCommit = "0123456789abcdef0123456789abcdef01234567";

enum class HubWire : std::uint8_t { plain, tls };

// What happens to one request in the place of, or to, the right answer.
struct HubEvent {
  int status = 0;  // 0: the right answer
  std::vector<std::string> headers = {};
  std::string body = {};
  std::optional<std::size_t> cut_after = {};   // bytes of the answer; then the connection is closed
  std::optional<std::size_t> hold_after = {};  // bytes; then silence until release()
};

enum class HubRanges : std::uint8_t {
  honoured,
  ignored,  // the whole with 200
  refused,  // 416
  shifted,  // 206, of another part
};

struct HubRequest {
  bool at_content_host = false;
  std::string target;
  std::string head;  // with the request line

  bool has_token() const;
};

class ScriptedHub {
 public:
  explicit ScriptedHub(HubWire wire = HubWire::plain);
  ~ScriptedHub();
  ScriptedHub(const ScriptedHub&) = delete;
  ScriptedHub& operator=(const ScriptedHub&) = delete;

  std::string address() const;
  std::string content_address() const;
  // With TLS: what clients trust it by.
  std::filesystem::path certificate() const;

  void add_file(const std::string& path, std::string content);
  // Listed with another digest or size than it has.
  void list_wrongly(const std::string& path, std::string sha256, std::uint64_t size_bytes);
  // Small files outside of the large storage have no digest in the listing.
  void list_without_digest(const std::string& path);
  void require_token(std::string token);
  void set_ranges(HubRanges ranges);
  void set_page_entries(std::size_t entries);

  // For the next request whose target holds the text; several wait in order.
  void next(std::string_view target_part, HubEvent event);
  // For every such request that finds no waiting event.
  void always(std::string_view target_part, HubEvent event);
  void release();

  std::vector<HubRequest> requests() const;
  // Those whose target holds the text.
  std::vector<HubRequest> requests_for(std::string_view target_part) const;
  // Waits until an answer is held.
  void wait_for_hold() const;
  // How many bytes the right whole answer to a GET of this target has; for cuts. At the content
  // host with `at_content_host`.
  std::size_t answer_bytes(const std::string& target, bool at_content_host) const;

 private:
  class Server;
  std::unique_ptr<Server> server_;
};

// Where the API and the files are, as clients ask for them.
std::string hub_revision_target(std::string_view revision = "main");
std::string hub_tree_target();
std::string hub_file_target(std::string_view path);
// At the content host.
std::string hub_blob_target(std::string_view sha256);

}  // namespace werk::test
