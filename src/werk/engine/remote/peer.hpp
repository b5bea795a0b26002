// Peer: asks one remote for its pages, with its key and within limits. Owned by the remote's
// engine, used by it and by its runtimes; loop thread only. It follows no redirect, and no text
// that it makes holds the key: neither an error nor a log line.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "werk/async/clock.hpp"
#include "werk/engine/engine.hpp"
#include "werk/engine/remote/pages.hpp"
#include "werk/engine/remote/remote_url.hpp"
#include "werk/http/client.hpp"

namespace werk::engine::remote {

// unknown: asked at each start; the others are taken as said.
enum class PeerKind : std::uint8_t { unknown, openai, werk };

struct RemoteSettings {
  std::string name;
  RemoteUrl url;
  std::string key = {};                         // a secret; empty: none is sent
  std::string key_env = {};                     // the variable it came from, for errors
  std::vector<std::string> models;              // none: those that the peer lists
  std::size_t parallel = 0;                     // calls at a time; 0: as they come
  std::optional<async::Duration> silence = {};  // given up after so long; none: the node's limit
  PeerKind kind = PeerKind::unknown;
};

class Peer {
 public:
  Peer(async::Executor executor, async::Clock& clock, RemoteSettings settings);

  const RemoteSettings& settings() const { return settings_; }
  // "remote lab", for errors.
  const std::string& text() const { return text_; }
  // Where calls go; the caller adds path and model.
  HttpTarget target() const;

  // Its models, those of its own remotes among them. `not_found` where it has no such page. Bounded
  // to a few seconds.
  async::awaitable<Result<std::vector<PeerModel>>> models(std::stop_token stop);
  // What it tells of this model's slots; none: nothing. Fails where it is no Werk.
  async::awaitable<Result<std::optional<NativeSlots>>> slots_of(std::string model,
                                                                std::stop_token stop);

 private:
  async::awaitable<Result<std::string>> get(std::string path, std::stop_token stop);
  Error explain(const http::Whole& answer) const;
  // The same without the key, in whatever the peer said.
  std::string masked(std::string text) const;

  async::Clock& clock_;
  RemoteSettings settings_;
  std::string text_;
  http::Client client_;
};

}  // namespace werk::engine::remote
