#include "werk/routing/router.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "werk/base/text.hpp"

namespace werk::routing {
namespace {

Error unknown_model(const Catalogue& catalogue, std::string_view name, const AliasRule* rule) {
  constexpr std::size_t kShownBytes = 200;
  const std::string shown = printable(name.substr(0, kShownBytes));
  std::string message =
      rule != nullptr
          ? fmt::format("the alias \"{}\" leads \"{}\" to \"{}\", which is not installed",
                        rule->pattern, shown, rule->model)
          : fmt::format("model \"{}\" is not installed", shown);
  const std::vector<std::string> near = near_names(name, catalogue.names());
  if (!near.empty()) {
    message += fmt::format("; did you mean {}?", fmt::join(near, " or "));
  } else if (catalogue.models().empty()) {
    message += "; no model is: `werk pull smollm2` or `werk import FILE --name ID` brings one";
  } else {
    message += "; `werk list` and GET /v1/models show what is";
  }
  // Clients with such names built in can't be told another one.
  if (rule == nullptr && name.starts_with("claude-")) {
    message += "; `werk serve --alias 'claude-*=MODEL'` lets these names reach an installed model";
  }
  Error error{ErrorCode::model_not_found, std::move(message), Origin::client};
  error.param = "model";
  return error;
}

bool serves_remotes(const engine::EngineInfo& info) {
  return std::ranges::any_of(info.formats, [](const std::string& format) {
    return format.starts_with(model::kRemoteFormat);
  });
}

}  // namespace

bool fits(const AliasRule& rule, std::string_view name) {
  const std::size_t star = rule.pattern.find('*');
  if (star == std::string::npos) return name == rule.pattern;
  const std::string_view begin = std::string_view(rule.pattern).substr(0, star);
  const std::string_view end = std::string_view(rule.pattern).substr(star + 1);
  return name.size() >= begin.size() + end.size() && name.starts_with(begin) && name.ends_with(end);
}

const model::InstalledModel* Router::find(const Catalogue& catalogue, std::string_view name) const {
  if (const model::InstalledModel* model = catalogue.find(name)) return model;
  const AliasRule* rule = rule_for(name);
  return rule == nullptr ? nullptr : catalogue.find(rule->model);
}

const AliasRule* Router::rule_for(std::string_view name) const {
  const auto found =
      std::ranges::find_if(aliases_, [&](const AliasRule& rule) { return fits(rule, name); });
  return found == aliases_.end() ? nullptr : &*found;
}

Result<Route> Router::route(const Catalogue& catalogue, std::string_view name) const {
  const model::InstalledModel* model = find(catalogue, name);
  if (model == nullptr) return fail(unknown_model(catalogue, name, rule_for(name)));
  const auto bound = bindings_.find(model->manifest.id);
  const bool has_own = bound != bindings_.end();
  const Binding& binding = has_own ? bound->second : node_;
  std::vector<Rejected> rejected;
  if (has_own) rejected = binding.missing;
  std::optional<Error> last;
  std::size_t tried = 0;  // engines that read its format
  const bool is_remote = !model::remote_of(model->manifest).empty();
  for (engine::Engine* engine : binding.engines) {
    const engine::EngineInfo& info = engine->info();
    if (std::ranges::find(info.formats, model->manifest.format) == info.formats.end()) {
      // A remote serves its own models, and these run nowhere else: nobody chose against it.
      if (is_remote || serves_remotes(info)) continue;
      rejected.push_back({info.name, "does not read the format " + model->manifest.format});
      continue;
    }
    Result<engine::StartPlan> plan = engine->plan(model->manifest, model->folder);
    if (plan) return Route{engine, std::move(*plan), std::move(rejected)};
    rejected.push_back({info.name, plan.error().message});
    last = std::move(plan.error());
    ++tried;
  }
  const bool only_one = tried == 1 && (!has_own || binding.missing.empty());
  if (last && only_one) return fail(std::move(*last));
  // What the node lacks matters where nothing that it has reads the format.
  if (!has_own && tried == 0)
    rejected.insert(rejected.begin(), binding.missing.begin(), binding.missing.end());
  std::string message = fmt::format("no engine can serve \"{}\"", model->manifest.id);
  for (const Rejected& one : rejected) message += fmt::format("; {}: {}", one.engine, one.reason);
  return fail(ErrorCode::model_unusable, std::move(message));
}

}  // namespace werk::routing
