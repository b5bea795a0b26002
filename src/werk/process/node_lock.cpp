#include "werk/process/node_lock.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <boost/json.hpp>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "werk/process/linux.hpp"

namespace werk::process {

namespace fs = std::filesystem;
namespace json = boost::json;

namespace {

constexpr std::string_view kSchema = "werk-node-1";

std::string run_folder(const std::string& home) { return home + "/run"; }

Error unwritable(const std::string& path, const std::string& reason) {
  return Error{ErrorCode::io,
               fmt::format("cannot write {}: {}; set WERK_HOME to another folder", path, reason)};
}

std::optional<NodeInfo> read_info(const std::string& folder) {
  std::ifstream file(folder + "/node.json", std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  boost::system::error_code error;
  const json::value value = json::parse(text, error);
  if (error || !value.is_object()) return std::nullopt;
  const json::object& members = value.get_object();
  const json::value* address = members.if_contains("address");
  const json::value* pid = members.if_contains("pid");
  const json::value* started_at = members.if_contains("started_at");
  if (address == nullptr || !address->is_string() || pid == nullptr || !pid->is_int64()) {
    return std::nullopt;
  }
  NodeInfo info{std::string(address->get_string()), pid->get_int64()};
  if (started_at != nullptr && started_at->is_int64()) info.started_at = started_at->get_int64();
  return info;
}

Error taken(const std::string& home) {
  const std::optional<NodeInfo> info = read_info(run_folder(home));
  if (!info) {
    return Error{ErrorCode::conflict,
                 fmt::format("another Werk node is starting or stopping on {}; wait a moment, or "
                             "set WERK_HOME to another folder",
                             home)};
  }
  return Error{ErrorCode::conflict,
               fmt::format("a Werk node (process {}) already serves {} at {}; stop it, or set "
                           "WERK_HOME to another folder",
                           info->pid, home, info->address)};
}

}  // namespace

Result<NodeLock> NodeLock::take(const std::string& home) {
  std::string folder = run_folder(home);
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return fail(unwritable(folder, error.message()));
  const std::string path = folder + "/lock";
  Descriptor lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock) return fail(unwritable(path, std::strerror(errno)));
  if (!os::lock_file(lock.get())) {
    if (errno == EAGAIN || errno == EACCES) return fail(taken(home));
    return fail(unwritable(path, std::strerror(errno)));
  }
  ::unlink((folder + "/node.json").c_str());  // left by a node that was killed
  return NodeLock(std::move(folder), std::move(lock));
}

bool NodeLock::is_held(const std::string& home) {
  const Descriptor lock(::open((run_folder(home) + "/lock").c_str(), O_RDWR | O_CLOEXEC));
  return lock && os::is_locked_by_other(lock.get());
}

std::optional<NodeInfo> NodeLock::running(const std::string& home) {
  if (!is_held(home)) return std::nullopt;
  return read_info(run_folder(home));
}

NodeLock::NodeLock(std::string folder, Descriptor lock)
    : folder_(std::move(folder)), lock_(std::move(lock)) {}

NodeLock::~NodeLock() {
  if (lock_) ::unlink((folder_ + "/node.json").c_str());
}

Status NodeLock::publish(const NodeInfo& info) {
  json::object members;
  members["schema"] = kSchema;
  members["address"] = info.address;
  members["pid"] = info.pid;
  members["started_at"] = info.started_at;
  const std::string path = folder_ + "/node.json";
  const std::string draft = path + ".new";
  std::ofstream file(draft, std::ios::binary | std::ios::trunc);
  file << json::serialize(members) << '\n';
  file.close();
  if (!file) return fail(unwritable(draft, std::strerror(errno)));
  if (::rename(draft.c_str(), path.c_str()) != 0) {
    return fail(unwritable(path, std::strerror(errno)));
  }
  return {};
}

}  // namespace werk::process
