// Router: a requested name becomes a route, the decision which engine serves it and what would be
// started, with the reasons for the engines that were rejected. Engines are tried in the order
// given (the app's order of preference, or the one that --backend names); a model may be bound to
// engines of its own. Pure; owned by the app.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "werk/base/result.hpp"
#include "werk/engine/engine.hpp"
#include "werk/routing/catalogue.hpp"

namespace werk::routing {

struct Rejected {
  std::string engine;
  std::string reason;
};

struct Route {
  engine::Engine* engine = nullptr;
  engine::StartPlan plan;
  std::vector<Rejected> rejected;  // engines that come before it in the order, and why not
};

// Routes are worked out once and shared by their calls.
using SharedRoute = std::shared_ptr<const Route>;

// A name that clients have built in reaches an installed model: "claude-*" stands for every name
// that begins so; without a star for one name. The first rule that fits counts, and only where no
// model has the name itself.
struct AliasRule {
  std::string pattern;
  std::string model;
};

bool fits(const AliasRule& rule, std::string_view name);

// The engines of one model, instead of the node's; and those that it should have but can't.
struct Binding {
  std::vector<engine::Engine*> engines;
  std::vector<Rejected> missing;
};

class Router {
 public:
  // The engines are borrowed; they must outlive the router. `bindings` are by model id. `missing`
  // are engines that the node should have but can't.
  explicit Router(std::vector<engine::Engine*> engines, std::vector<AliasRule> aliases = {},
                  std::map<std::string, Binding> bindings = {}, std::vector<Rejected> missing = {})
      : node_{std::move(engines), std::move(missing)},
        aliases_(std::move(aliases)),
        bindings_(std::move(bindings)) {}

  // The model of that name, by id, alias or rule; null if there is none.
  const model::InstalledModel* find(const Catalogue& catalogue, std::string_view name) const;

  // Fails with model_not_found (near names in the message), or, if the model exists, with what
  // keeps each engine from serving it.
  Result<Route> route(const Catalogue& catalogue, std::string_view name) const;

 private:
  const AliasRule* rule_for(std::string_view name) const;

  Binding node_;
  std::vector<AliasRule> aliases_;
  std::map<std::string, Binding> bindings_;
};

}  // namespace werk::routing
