#include "werk/engine/llama_server/facts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>

#include "werk/base/text.hpp"

namespace werk::engine::llama_server {
namespace {

namespace json = boost::json;

constexpr std::size_t kNamesShownMax = 3;

tl::unexpected<Error> odd_body(std::string_view route, std::string_view what) {
  return fail(
      ErrorCode::engine_failed, Origin::engine,
      fmt::format("llama-server answered {} with something else than expected: {}", route, what));
}

Result<json::value> parse_body(std::string_view route, std::string_view body) {
  boost::system::error_code error;
  json::value value = json::parse(body, error);
  if (error) return odd_body(route, error.message());
  return value;
}

const json::value* member(const json::value& value, std::string_view key) {
  const json::object* object = value.if_object();
  return object == nullptr ? nullptr : object->if_contains(key);
}

std::uint64_t unsigned_or(const json::value* value, std::uint64_t otherwise) {
  if (value == nullptr) return otherwise;
  boost::system::error_code error;
  const auto number = value->to_number<std::uint64_t>(error);
  return error ? otherwise : number;
}

bool is_true(const json::value* value) {
  return value != nullptr && value->is_bool() && value->get_bool();
}

// Whether a chat template renders a system message that isn't the first. Some refuse the whole
// request then; what they say is all that tells them (Qwen 3.5 the one, Gemma and Mistral the
// other).
bool takes_later_system(std::string_view chat_template) {
  if (chat_template.find("raise_exception") == std::string_view::npos) return true;
  const auto says = [&](std::string_view words) {
    return chat_template.find(words) != std::string_view::npos;
  };
  return !says("must be at the beginning") && !says("must alternate");
}

void add_names(const json::value& entry, std::vector<std::string>& names) {
  if (const json::value* id = member(entry, "id"); id != nullptr && id->is_string()) {
    names.emplace_back(id->get_string());
  }
  const json::value* aliases = member(entry, "aliases");
  if (aliases == nullptr || !aliases->is_array()) return;
  for (const json::value& alias : aliases->get_array()) {
    if (alias.is_string()) names.emplace_back(alias.get_string());
  }
}

}  // namespace

Status check_serves(std::string_view models_body, std::string_view alias) {
  auto body = parse_body("/v1/models", models_body);
  if (!body) return pass_on(body);
  const json::value* data = member(*body, "data");
  if (data == nullptr || !data->is_array()) return odd_body("/v1/models", "no list of models");
  std::vector<std::string> names;
  for (const json::value& entry : data->get_array()) add_names(entry, names);
  if (std::find(names.begin(), names.end(), alias) != names.end()) return {};
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  if (names.size() > kNamesShownMax) names.resize(kNamesShownMax);
  // A name may be a path of this machine, so only its last part is told.
  for (std::string& name : names) name = printable(name.substr(name.rfind('/') + 1));
  return fail(
      ErrorCode::start_failed, Origin::engine,
      fmt::format("llama-server came up but serves another model than the one asked for ({})",
                  names.empty() ? "none at all" : fmt::format("{}", fmt::join(names, ", "))));
}

Result<RuntimeFacts> parse_props(std::string_view props_body) {
  auto body = parse_body("/props", props_body);
  if (!body) return pass_on(body);
  RuntimeFacts facts;
  const std::uint64_t slots = unsigned_or(member(*body, "total_slots"), 0);
  if (slots == 0) return odd_body("/props", "no number of slots");
  facts.slots = static_cast<std::size_t>(slots);
  const json::value* settings = member(*body, "default_generation_settings");
  if (settings != nullptr)
    facts.context_tokens_per_slot = unsigned_or(member(*settings, "n_ctx"), 0);
  const json::value* caps = member(*body, "chat_template_caps");
  // Engines too old to tell are believed able.
  if (caps != nullptr && caps->is_object()) {
    facts.supports_tools = is_true(member(*caps, "supports_tools"));
    facts.keeps_reasoning = is_true(member(*caps, "supports_preserve_reasoning"));
  }
  const json::value* chat_template = member(*body, "chat_template");
  if (chat_template != nullptr && chat_template->is_string())
    facts.takes_later_system = takes_later_system(chat_template->get_string());
  const json::value* modalities = member(*body, "modalities");
  facts.supports_images = modalities != nullptr && is_true(member(*modalities, "vision"));
  return facts;
}

Status check_sizes(const StartPlan& plan, const RuntimeFacts& facts, SizedBy slots,
                   SizedBy context) {
  if (slots == SizedBy::plan && facts.slots < plan.slots) {
    return fail(ErrorCode::start_failed, Origin::engine,
                fmt::format("llama-server has {} slots where {} were asked for (--parallel)",
                            facts.slots, plan.slots));
  }
  // Extra slots share the total, so words about either decide the context of each.
  if (slots == SizedBy::extra_arguments || context == SizedBy::extra_arguments) return {};
  if (facts.context_tokens_per_slot < plan.context_tokens_per_slot) {
    return fail(
        ErrorCode::start_failed, Origin::engine,
        fmt::format("llama-server gives each slot a context of {} tokens where {} were asked for "
                    "(--ctx-size)",
                    facts.context_tokens_per_slot, plan.context_tokens_per_slot));
  }
  return {};
}

Result<std::size_t> count_busy_slots(std::string_view slots_body) {
  auto body = parse_body("/slots", slots_body);
  if (!body) return pass_on(body);
  if (!body->is_array()) return odd_body("/slots", "no list of slots");
  std::size_t busy = 0;
  for (const json::value& slot : body->get_array()) {
    const json::value* processing = member(slot, "is_processing");
    if (processing == nullptr || !processing->is_bool())
      return odd_body("/slots", "a slot without state");
    if (processing->get_bool()) ++busy;
  }
  return busy;
}

}  // namespace werk::engine::llama_server
