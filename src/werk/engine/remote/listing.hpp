// How the models of remotes stand beside installed ones: each as a model with a made-up manifest,
// whose format ("remote:lab") leads it to its remote's engine and to no other. A name that is
// taken, by an installed model or by another remote's, is listed with its remote's before it
// ("lab/qwen"); that longer name always works. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "werk/engine/remote/pages.hpp"
#include "werk/model/store.hpp"

namespace werk::engine::remote {

// What is known of one remote's models at the moment.
struct RemoteListing {
  std::string name;
  std::vector<PeerModel> models;
};

std::string format_of(std::string_view remote);

// The manifest of one model of a remote: its `name` is what the peer calls it.
model::Manifest remote_manifest(std::string_view remote, const PeerModel& model);

std::vector<model::InstalledModel> list_remotes(
    const std::vector<RemoteListing>& remotes, const std::vector<model::InstalledModel>& installed);

}  // namespace werk::engine::remote
