#include "werk/gateway/tool_call_ledger.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "werk/base/json_cursor.hpp"

namespace werk::gateway {

ToolCallLedger::Fragment ToolCallLedger::read(std::string_view element) {
  Fragment fragment;
  JsonObjectCursor members(element);
  while (const auto member = members.next()) {
    if (member->kind() == JsonKind::null) continue;
    if (member->is("index")) {
      fragment.index = json_unsigned(member->value);
    } else if (member->is("id")) {
      fragment.has_id = true;
      fragment.id = json_string(member->value).value_or("");
    } else if (member->is("type")) {
      fragment.has_type = true;
    } else if (member->is("function")) {
      fragment.function = member->value;
    }
  }
  JsonObjectCursor inner(fragment.function);
  while (const auto member = inner.next()) {
    if (member->is("name")) fragment.name = json_string(member->value).value_or("");
    if (member->is("arguments")) fragment.arguments = member->value;
  }
  return fragment;
}

// The latest call that it holds for.
template <class Predicate>
ToolCallLedger::Call* ToolCallLedger::latest(Predicate holds) {
  const auto found = std::find_if(calls_.rbegin(), calls_.rend(), holds);
  return found == calls_.rend() ? nullptr : &*found;
}

ToolCallLedger::Call* ToolCallLedger::with_index(std::uint64_t index, std::uint32_t choice) {
  return latest(
      [&](const Call& call) { return call.choice == choice && call.engine_index == index; });
}

ToolCallLedger::Call* ToolCallLedger::with_id(std::string_view id, std::uint32_t choice) {
  if (id.empty()) return nullptr;
  return latest([&](const Call& call) { return call.choice == choice && call.engine_id == id; });
}

ToolCallLedger::Call* ToolCallLedger::last(std::uint32_t choice) {
  return latest([&](const Call& call) { return call.choice == choice; });
}

// Whether a fragment that seems to belong to `call` in truth begins a new one. A name opens a call;
// some engines repeat the name in every fragment, so an equal name counts only once the arguments
// are whole.
bool ToolCallLedger::starts_another(const Call& call, const Fragment& fragment) {
  if (fragment.name.empty()) return false;
  if (!fragment.id.empty() && !call.engine_id.empty()) return fragment.id != call.engine_id;
  if (call.arguments.complete()) return true;
  return !call.name.empty() && fragment.name != call.name;
}

ToolCallLedger::Call* ToolCallLedger::find(const Fragment& fragment, std::uint32_t choice) {
  if (Call* known = with_id(fragment.id, choice)) return known;
  Call* call = nullptr;
  if (fragment.index) {
    call = with_index(*fragment.index, choice);
  } else if (fragment.id.empty() || fragment.name.empty()) {
    call = last(choice);
  }
  return call != nullptr && !starts_another(*call, fragment) ? call : nullptr;
}

ToolCallLedger::Call& ToolCallLedger::open(const Fragment& fragment, std::uint32_t choice) {
  const Call* before = last(choice);
  const std::uint32_t index = before == nullptr ? 0 : before->index + 1;
  Call& call = calls_.emplace_back();
  call.choice = choice;
  call.index = index;
  call.engine_index = fragment.index;
  call.engine_id = fragment.id;
  call.id = fragment.id.empty() ? fmt::format("call_{}{}", id_seed_, calls_.size()) : fragment.id;
  call.arguments = JsonScanner(JsonScanLimits{.notes = JsonNotes::nothing});
  return call;
}

Status ToolCallLedger::take_one(JsonSplice& splice, std::string_view element,
                                std::uint32_t choice) {
  const Fragment fragment = read(element);
  Call* call = find(fragment, choice);
  const bool opens = call == nullptr;
  if (opens) {
    if (calls_.size() >= kToolCallsMax) {
      return fail(ErrorCode::engine_failed, Origin::engine,
                  fmt::format("the engine's answer holds more than {} tool calls", kToolCallsMax));
    }
    call = &open(fragment, choice);
  }
  if (!fragment.name.empty()) call->name = fragment.name;
  JsonObjectEditor editor(splice, element);
  bool edited = false;
  const auto set = [&](std::string_view key, std::string json) {
    editor.set(key, std::move(json));
    edited = true;
  };
  if (fragment.index != call->index) set("index", fmt::to_string(call->index));
  if (fragment.id != call->id && (opens || fragment.has_id)) set("id", to_json_string(call->id));
  if (opens && !fragment.has_type) set("type", "\"function\"");
  if (edited) editor.commit();
  if (fragment.arguments.empty()) return {};
  std::string text;
  if (auto given = json_string(fragment.arguments)) {
    text = std::move(*given);
  } else {
    // Engines that send the arguments as an object; null means none.
    if (fragment.arguments != "null") text = fragment.arguments;
    splice.replace(range_in(splice.text(), fragment.arguments), to_json_string(text));
  }
  argument_bytes_ += text.size();
  if (argument_bytes_ > kToolArgumentBytesMax) {
    return fail(ErrorCode::engine_failed, Origin::engine,
                fmt::format("the arguments of the engine's tool calls are longer than {} bytes",
                            kToolArgumentBytesMax));
  }
  (void)call->arguments.feed(text);  // arguments that are no JSON are the client's matter
  return {};
}

Result<bool> ToolCallLedger::take(JsonSplice& splice, std::string_view tool_calls,
                                  std::uint32_t choice) {
  bool any = false;
  JsonArrayCursor elements(tool_calls);
  while (const auto element = elements.next()) {
    if (json_kind(*element) != JsonKind::object || element->back() != '}') continue;
    any = true;
    if (Status status = take_one(splice, *element, choice); !status) return pass_on(status);
  }
  return any;
}

}  // namespace werk::gateway
