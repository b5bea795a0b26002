// NodeLock: at most one serving node per home. The lock lies in `<home>/run/lock` and goes with the
// process, however it ends; `<home>/run/node.json` says who serves and where, for commands that
// talk to the running node. Held by main for as long as the node serves. Any thread, one at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "werk/base/result.hpp"
#include "werk/process/descriptor.hpp"

namespace werk::process {

struct NodeInfo {
  std::string address;  // "http://127.0.0.1:11434"
  std::int64_t pid = 0;
  std::int64_t started_at = 0;  // seconds since 1970
};

class NodeLock {
 public:
  // Makes `<home>/run` where missing. conflict: another node serves this home (the message names
  // its process and address); io: the home can't be written.
  static Result<NodeLock> take(const std::string& home);
  // Who serves this home now. Empty if nobody does, or if the node has not published yet.
  static std::optional<NodeInfo> running(const std::string& home);
  // Whether a node holds this home now: also one that is starting or stopping.
  static bool is_held(const std::string& home);

  NodeLock(NodeLock&& other) noexcept = default;
  NodeLock& operator=(NodeLock&&) = delete;
  // Withdraws what was published and frees the lock.
  ~NodeLock();

  // Writes node.json, whole or not at all.
  Status publish(const NodeInfo& info);

 private:
  NodeLock(std::string folder, Descriptor lock);

  std::string folder_;
  Descriptor lock_;
};

}  // namespace werk::process
