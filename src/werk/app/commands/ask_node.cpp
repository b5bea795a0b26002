#include "werk/app/commands/ask_node.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "werk/model/store.hpp"
#include "werk/process/interrupt.hpp"
#include "werk/process/node_lock.hpp"

namespace werk::app {

using namespace std::chrono_literals;

namespace {

constexpr auto kStopReserve = 15s;  // for engines to end, on top of the drain limit
// How long another node may take to start or to end before we give up.
constexpr auto kOthersMax = 60s;
constexpr auto kLook = 50ms;

// It drains, or takes no connection any more though it hasn't gone yet. `cancelled` after a signal.
Result<bool> is_ending(const NodeAddress& node) {
  NodeRequest request;
  request.target = "/werk/v1/observability";
  request.silence_max = 5s;
  auto page = NodeClient(node).ask(request);
  if (!page && page.error().code == ErrorCode::cancelled) return pass_on(page);
  if (!page) return page.error().code == ErrorCode::io;
  return page->find("\"draining\":true") != std::string::npos;
}

}  // namespace

Result<NodeAddress> AskedNode::reach() {
  if (!line_.url.empty()) return find_node(line_.url, settings_, home_);
  const auto limit = std::chrono::steady_clock::now() + kOthersMax;
  while (true) {
    auto node = home_node(settings_, home_);
    Result<bool> ending = node ? is_ending(*node) : Result<bool>(true);
    if (!ending) return pass_on(ending);
    if (node && !*ending) {
      if (!own_ && !std::exchange(told_, true)) note_idle_options(line_, node->url);
      return std::move(*node);
    }
    if (!process::NodeLock::is_held(home_.string())) {
      auto own = start_own();
      // Where another command was faster its node is used.
      if (own || own.error().code != ErrorCode::conflict) return own;
    }
    if (std::chrono::steady_clock::now() > limit) {
      return fail(ErrorCode::conflict,
                  "the node of this home is starting or stopping and doesn't get on with it; `werk "
                  "doctor` says which process it is");
    }
    Status waited = process::pause(kLook);
    if (!waited) return pass_on(waited);
  }
}

Status AskedNode::check_home() const {
  auto listing = model::Store(home_).list();
  if (!listing) return pass_on(listing);
  if (!listing->models.empty() || !settings_.remotes.empty()) return {};
  if (!listing->broken.empty()) return fail(listing->broken.front().error);
  return fail(ErrorCode::model_not_found,
              "no model is installed; `werk pull smollm2` brings a small one, `werk import FILE` "
              "takes one of yours");
}

Result<NodeAddress> AskedNode::start_own() {
  Status sound = check_home();
  if (!sound) return pass_on(sound);
  std::vector<std::string> words = serve_words(line_, {"--host", "--port", "--model"});
  // Instead of the settings' default, which is not what is asked; a name that only an alias of the
  // settings leads somewhere is left to the node.
  if (model::Store(home_).find(model_)) words.push_back("--model=" + model_);
  words.emplace_back("--host=127.0.0.1");
  words.emplace_back("--port=0");
  own_ = std::make_unique<OwnNode>(home_, std::move(words), "own.log");
  auto url = own_->start();
  if (!url) {
    own_.reset();
    return pass_on(url);
  }
  return NodeAddress{*url, settings_.keys.empty() ? "" : settings_.keys.front(), Way::direct};
}

bool AskedNode::has_gone(const Error& error) const {
  return line_.url.empty() && (error.code == ErrorCode::draining || error.code == ErrorCode::io);
}

std::string AskedNode::unnamed_model() const {
  if (settings_.model) return *settings_.model;
  const auto listing = model::Store(home_).list();
  const bool one = line_.url.empty() && listing && listing->models.size() == 1;
  return one ? listing->models.front().manifest.id : std::string();
}

std::string AskedNode::way_to_name() const {
  if (!line_.url.empty()) return "no model is named, and the node there has no default";
  constexpr std::size_t kShown = 8;
  std::vector<std::string> ids;
  std::size_t all = 0;
  const auto listing = model::Store(home_).list();
  if (listing) all = listing->models.size();
  for (std::size_t i = 0; i < std::min(all, kShown); ++i)
    ids.push_back(listing->models[i].manifest.id);
  return fmt::format("{} models are installed and none is the default; name one: {}{}", all,
                     fmt::join(ids, ", "), all > kShown ? ", ..." : "");
}

void AskedNode::end() {
  if (own_) own_->stop(settings_.drain_timeout + kStopReserve);
  own_.reset();
}

}  // namespace werk::app
