// How a command talks to a running node, its home's own or one that --url names, with libcurl.
// NodeClient blocks; Ctrl-C and SIGTERM end its request at once, which closes its connection, and
// with it what the node did for it. NodeCalls never blocks, for a screen that must stay alive while
// a node doesn't answer. The node's refusals come back as Errors with the node's own words. Main
// thread, no loop.
#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "werk/app/settings.hpp"
#include "werk/base/result.hpp"

namespace werk::app {

// Whether proxies of the environment apply: never on the way to this machine's own node.
enum class Way : std::uint8_t { direct, by_environment };

struct NodeAddress {
  std::string url;  // "http://127.0.0.1:11434", without a slash at its end
  std::string key;  // empty: none is sent
  Way way = Way::direct;
};

// The node that --url (or the option named) names, else the one that serves the home; `not_found`
// with what to do when none runs, `invalid_request` for an address that is none.
Result<NodeAddress> find_node(const std::string& url, const Settings& settings,
                              const std::filesystem::path& home, std::string_view option = "--url");
// The one that serves the home, if one does.
std::optional<NodeAddress> home_node(const Settings& settings, const std::filesystem::path& home);

struct NodeRequest {
  std::string method = "GET";
  std::string target;                     // "/werk/v1/observability"
  std::string body = {};                  // JSON; sent with POST only
  std::vector<std::string> headers = {};  // "name: value"
  std::chrono::seconds silence_max{0};    // without a byte from the node; 0: as long as it takes
  std::function<void()> on_wait = {};     // called at least once a second until the answer is whole
};

class NodeClient {
 public:
  // Return no to end the request, which then fails with `cancelled`.
  enum class GoOn : std::uint8_t { no, yes };
  using OnPiece = std::function<GoOn(std::string_view piece)>;

  explicit NodeClient(NodeAddress address) : address_(std::move(address)) {}

  // The body of a good answer (2xx), at most 64 MiB of it. Fails with `io` when the node can't be
  // reached or the answer breaks off, `cancelled` after a signal, else as the node says.
  Result<std::string> ask(const NodeRequest& request) const;
  // The same, given piece by piece as it arrives.
  Status stream(const NodeRequest& request, const OnPiece& on_piece) const;

  const NodeAddress& address() const { return address_; }

 private:
  NodeAddress address_;
};

// Several requests at once, carried on in turns. Owned by one command; destroying it closes the
// connections of what is still under way, and nobody is called any more.
class NodeCalls {
 public:
  // The body of a good answer or the failure, as NodeClient::ask has them.
  using OnEnd = std::function<void(Result<std::string>)>;

  NodeCalls();
  NodeCalls(const NodeCalls&) = delete;
  NodeCalls& operator=(const NodeCalls&) = delete;
  ~NodeCalls();

  // on_end is called in a later turn(). Pieces and signs of waiting are nobody's here.
  void begin(const NodeAddress& address, NodeRequest request, OnEnd on_end);
  // Waits until something arrives, one of the descriptors is readable or the time has passed, and
  // carries on what can be.
  void turn(std::span<const int> descriptors, std::chrono::milliseconds at_most);

 private:
  struct Call;
  struct Transfers;

  void finish();

  std::unique_ptr<Transfers> transfers_;
  std::list<Call> calls_;
};

// The address under which this machine reaches a node that listens there: one that is listened on
// everywhere is reached by loopback.
std::string reachable_here(std::string url);

// An id or a name as one segment of a path: everything but unreserved characters is escaped.
std::string path_segment(std::string_view text);

}  // namespace werk::app
