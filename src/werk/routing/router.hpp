// Router: a requested name becomes a route, the decision which engine serves it and what would be
// started, with the reasons for the engines that were rejected. Engines are tried in the order
// given (the app's order of preference, or the one that
// --backend names). Pure; owned by the app.
#pragma once

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

class Router {
 public:
  // Borrowed; they must outlive the router.
  explicit Router(std::vector<engine::Engine*> engines) : engines_(std::move(engines)) {}

  // Fails with model_not_found (near names in the message), or, if the model exists, with what
  // keeps each engine from serving it.
  Result<Route> route(const Catalogue& catalogue, std::string_view name) const;

 private:
  std::vector<engine::Engine*> engines_;
};

}  // namespace werk::routing
