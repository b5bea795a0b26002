#include "werk/engine/llama_server/probe_cache.hpp"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <fstream>
#include <iterator>

#include "werk/base/digest.hpp"

namespace werk::engine::llama_server {
namespace {

namespace json = boost::json;

constexpr std::size_t kEntriesMax = 32;
constexpr std::uint64_t kFileBytesMax = 4 * 1024 * 1024;

template <class Number>
bool read_number(const json::object& object, std::string_view key, Number& out) {
  const json::value* value = object.if_contains(key);
  if (value == nullptr) return false;
  boost::system::error_code error;
  out = value->to_number<Number>(error);
  return !error;
}

bool read_string(const json::object& object, std::string_view key, std::string& out) {
  const json::value* value = object.if_contains(key);
  if (value == nullptr || !value->is_string()) return false;
  out = std::string(value->get_string());
  return true;
}

bool read_entry(const json::object& object, CachedProbe& probe) {
  Executable& executable = probe.executable;
  const bool complete = read_string(object, "path", executable.path) &&
                        read_number(object, "size_bytes", probe.identity.size_bytes) &&
                        read_number(object, "changed_ns", probe.identity.changed_ns) &&
                        read_number(object, "inode", probe.identity.inode) &&
                        read_string(object, "version", executable.version.semantic) &&
                        read_number(object, "build", executable.version.build) &&
                        read_string(object, "commit", executable.version.commit);
  const json::value* flags = object.if_contains("flags");
  if (!complete || flags == nullptr || !flags->is_array()) return false;
  for (const json::value& flag : flags->get_array()) {
    if (flag.is_string()) executable.flags.emplace(flag.get_string());
  }
  return true;
}

}  // namespace

std::string probes_to_json(const CachedProbes& probes) {
  json::array entries;
  for (const auto& [path, probe] : probes) {
    if (entries.size() == kEntriesMax) break;
    json::object entry;
    entry["path"] = path;
    entry["size_bytes"] = probe.identity.size_bytes;
    entry["changed_ns"] = probe.identity.changed_ns;
    entry["inode"] = probe.identity.inode;
    entry["version"] = probe.executable.version.semantic;
    entry["build"] = probe.executable.version.build;
    entry["commit"] = probe.executable.version.commit;
    json::array flags;
    for (const std::string& flag : probe.executable.flags) flags.emplace_back(flag);
    entry["flags"] = std::move(flags);
    entries.emplace_back(std::move(entry));
  }
  json::object root;
  root["schema"] = 1;
  root["executables"] = std::move(entries);
  return json::serialize(root) + "\n";
}

CachedProbes probes_from_json(std::string_view text) {
  CachedProbes probes;
  boost::system::error_code error;
  const json::value root = json::parse(text, error);
  const json::object* object = error ? nullptr : root.if_object();
  const json::value* entries = object == nullptr ? nullptr : object->if_contains("executables");
  if (entries == nullptr || !entries->is_array()) return probes;
  for (const json::value& entry : entries->get_array()) {
    CachedProbe probe;
    if (!entry.is_object() || !read_entry(entry.get_object(), probe)) continue;
    std::string path = probe.executable.path;
    probes.insert_or_assign(std::move(path), std::move(probe));
  }
  return probes;
}

CachedProbes read_probes(const std::filesystem::path& file) {
  std::error_code error;
  const std::uint64_t size_bytes = std::filesystem::file_size(file, error);
  if (error || size_bytes > kFileBytesMax) return {};
  std::ifstream in(file, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  return probes_from_json(text);
}

Status write_probes(const std::filesystem::path& file, const CachedProbes& probes) {
  std::error_code error;
  std::filesystem::create_directories(file.parent_path(), error);
  const std::filesystem::path fresh = fmt::format("{}.{}", file.string(), random_hex(4));
  std::ofstream out(fresh, std::ios::binary | std::ios::trunc);
  out << probes_to_json(probes);
  out.close();
  if (out) std::filesystem::rename(fresh, file, error);
  if (out && !error) return {};
  std::error_code ignored;
  std::filesystem::remove(fresh, ignored);
  return fail(ErrorCode::io, fmt::format("cannot write {}", file.string()));
}

}  // namespace werk::engine::llama_server
