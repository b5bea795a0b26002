#include "tests/support/fake_engine/settings.hpp"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>

namespace werk::fake {

namespace {

void take(const json::object& members, std::string_view name, std::string& into) {
  if (const json::value* value = members.if_contains(name); value && value->is_string()) {
    into = std::string(value->get_string());
  }
}

void take(const json::object& members, std::string_view name, bool& into) {
  if (const json::value* value = members.if_contains(name); value && value->is_bool()) {
    into = value->get_bool();
  }
}

template <class Number>
void take_number(const json::object& members, std::string_view name, Number& into) {
  if (const json::value* value = members.if_contains(name); value && value->is_number()) {
    into = value->to_number<Number>();
  }
}

void take_number(const json::object& members, std::string_view name,
                 std::optional<std::uint64_t>& into) {
  const json::value* value = members.if_contains(name);
  if (value == nullptr) return;
  into = value->is_number() ? std::optional(value->to_number<std::uint64_t>()) : std::nullopt;
}

void take(const json::object& members, std::string_view name, std::vector<std::string>& into) {
  const json::value* value = members.if_contains(name);
  if (value == nullptr || !value->is_array()) return;
  into.clear();
  for (const json::value& item : value->get_array()) into.emplace_back(item.as_string());
}

void take(const json::object& members, std::string_view name, json::object& into) {
  if (const json::value* value = members.if_contains(name); value && value->is_object()) {
    for (const auto& member : value->get_object()) into[member.key()] = member.value();
  }
}

void take(const json::object& members, std::string_view name, json::array& into) {
  if (const json::value* value = members.if_contains(name); value && value->is_array()) {
    into = value->get_array();
  }
}

std::string line_end_named(const std::string& name) {
  if (name == "crlf") return "\r\n";
  return name == "cr" ? "\r" : "\n";
}

[[noreturn]] void bad_script(const std::string& path) {
  std::fprintf(stderr, "fake engine: %s is no JSON object\n", path.c_str());
  std::exit(70);
}

}  // namespace

std::string text_member(const json::object& members, std::string_view name) {
  std::string text;
  take(members, name, text);
  return text;
}

std::uint64_t number_member(const json::object& members, std::string_view name,
                            std::uint64_t otherwise) {
  take_number(members, name, otherwise);
  return otherwise;
}

void merge(Reply& reply, const json::object& members) {
  take(members, "hold", reply.hold);
  take(members, "gated", reply.gated);
  take_number(members, "hold_after", reply.hold_after);
  take_number(members, "tokens", reply.tokens);
  take(members, "content", reply.content);
  take(members, "reasoning", reply.reasoning);
  take(members, "reasoning_field", reply.reasoning_field);
  take(members, "tool_calls", reply.tool_calls);
  take(members, "events", reply.events);
  take(members, "raw", reply.raw);
  take(members, "finish_reason", reply.finish_reason);
  take(members, "role_chunk", reply.role_chunk);
  take_number(members, "progress_events", reply.progress_events);
  take_number(members, "prompt_tokens", reply.prompt_tokens);
  take_number(members, "cached_tokens", reply.cached_tokens);
  if (const json::value* die = members.if_contains("die"); die != nullptr) {
    reply.death.reset();
    if (die->is_object()) {
      const json::object& object = die->get_object();
      reply.death = Death{number_member(object, "after", 0), text_member(object, "how")};
    }
  }
  take_number(members, "status", reply.status);
  take(members, "error", reply.error);
  take(members, "headers", reply.headers);
  if (members.contains("line_end")) {
    reply.line_end = line_end_named(text_member(members, "line_end"));
  }
  take(members, "comments", reply.comments);
  take_number(members, "segment_bytes", reply.segment_bytes);
  take_number(members, "events_per_write", reply.events_per_write);
  take_number(members, "pace_us", reply.pace_us);
  take(members, "framing", reply.framing);
}

void merge(Settings& settings, const json::object& members) {
  take(members, "start", settings.start);
  take_number(members, "exit_code", settings.exit_code);
  take(members, "stderr", settings.stderr_text);
  take(members, "version", settings.version);
  take_number(members, "build", settings.build);
  take(members, "commit", settings.commit);
  take(members, "devices", settings.devices);
  take(members, "help_without", settings.help_without);
  take(members, "any_flag", settings.any_flag);
  take(members, "check_model", settings.check_model);
  take(members, "ignore_term", settings.ignore_term);
  take(members, "busy_after_close", settings.busy_after_close);
  take(members, "alias", settings.alias);
  take_number(members, "total_slots", settings.total_slots);
  take_number(members, "n_ctx", settings.n_ctx);
  take_number(members, "n_ctx_train", settings.n_ctx_train);
  take(members, "props", settings.props);
  take(members, "statuses", settings.statuses);
  take_number(members, "hold_until", settings.hold_until);
  take_number(members, "requests_per_connection", settings.requests_per_connection);
  take(members, "core", settings.core);
  take(members, "control", settings.control);
  if (const json::value* reply = members.if_contains("reply"); reply && reply->is_object()) {
    merge(settings.reply, reply->get_object());
  }
  if (const json::value* list = members.if_contains("replies"); list && list->is_array()) {
    settings.replies.clear();
    for (const json::value& item : list->get_array()) settings.replies.push_back(item.as_object());
  }
  take(members, "models", settings.models);
}

Settings load_settings(const std::string& program, const std::string& model,
                       const std::string& alias) {
  Settings settings;
  const char* named = std::getenv("FAKE_ENGINE_SCRIPT");
  const std::string path = named != nullptr ? named : program + ".json";
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    if (named != nullptr) bad_script(path);
    return settings;
  }
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  boost::system::error_code error;
  const json::value value = json::parse(text, error);
  if (error || !value.is_object()) bad_script(path);
  merge(settings, value.get_object());
  const json::object models = settings.models;
  for (const auto& entry : models) {
    const std::string_view part = entry.key();
    if (!model.contains(part) && !alias.contains(part)) continue;
    merge(settings, entry.value().as_object());
    break;
  }
  return settings;
}

}  // namespace werk::fake
