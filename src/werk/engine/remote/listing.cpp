#include "werk/engine/remote/listing.hpp"

#include <fmt/format.h>

#include <map>

#include "werk/base/timestamp.hpp"

namespace werk::engine::remote {
namespace {

std::string time_text(std::int64_t seconds) {
  constexpr std::int64_t kLatest = 253'402'300'799;  // the last second of the year 9999
  if (seconds <= 0 || seconds > kLatest) return {};
  return timestamp(std::chrono::system_clock::from_time_t(static_cast<std::time_t>(seconds)));
}

std::string long_name(std::string_view remote, std::string_view model) {
  return fmt::format("{}/{}", remote, model);
}

}  // namespace

std::string format_of(std::string_view remote) {
  return fmt::format("{}{}", model::kRemoteFormat, remote);
}

model::Manifest remote_manifest(std::string_view remote, const PeerModel& model) {
  model::Manifest manifest;
  manifest.id = model.id;
  manifest.name = model.id;
  manifest.format = format_of(remote);
  manifest.training_context_tokens = model.context_tokens;
  manifest.capabilities.chat = true;
  manifest.capabilities.completion = true;
  manifest.imported_at = time_text(model.created);
  return manifest;
}

std::vector<model::InstalledModel> list_remotes(
    const std::vector<RemoteListing>& remotes,
    const std::vector<model::InstalledModel>& installed) {
  std::map<std::string, std::size_t, std::less<>> claims;
  for (const model::InstalledModel& one : installed) {
    ++claims[one.manifest.id];
    for (const std::string& alias : one.manifest.aliases) ++claims[alias];
  }
  for (const RemoteListing& remote : remotes) {
    for (const PeerModel& model : remote.models) ++claims[model.id];
  }
  std::vector<model::InstalledModel> listed;
  for (const RemoteListing& remote : remotes) {
    for (const PeerModel& model : remote.models) {
      model::InstalledModel one;
      one.manifest = remote_manifest(remote.name, model);
      const std::string name = long_name(remote.name, model.id);
      if (claims.at(model.id) > 1) {
        one.manifest.id = name;
      } else {
        one.manifest.aliases.push_back(name);
      }
      listed.push_back(std::move(one));
    }
  }
  return listed;
}

}  // namespace werk::engine::remote
