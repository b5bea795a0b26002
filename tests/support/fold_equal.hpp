// Compares a folded answer with the engine's own whole answer: equal bytes once id, time and
// timings are blanked, the ids of tool calls too, which the engine draws anew for each answer. Pure
// functions over valid JSON, for unit tests and for those with a real engine.
#pragma once

#include <string>
#include <string_view>

#include "werk/base/json_cursor.hpp"
#include "werk/base/json_splice.hpp"

namespace werk::test {

// The answer with "" for what may differ.
inline std::string blanked(std::string_view answer) {
  const std::string_view object = trim_json(answer);
  JsonSplice splice(object);
  JsonObjectEditor top(splice, object);
  for (const std::string_view name : {"id", "created", "timings"}) {
    if (find_member(object, name)) top.set(name, "\"\"");
  }
  top.commit();
  JsonArrayCursor choices(find_member(object, "choices").value_or(""));
  while (const auto choice = choices.next()) {
    const auto message = find_member(*choice, "message").value_or("");
    JsonArrayCursor calls(find_member(message, "tool_calls").value_or(""));
    while (const auto call = calls.next()) {
      JsonObjectEditor editor(splice, *call);
      if (find_member(*call, "id")) editor.set("id", "\"\"");
      editor.commit();
    }
  }
  return splice.apply();
}

inline bool fold_equal(std::string_view folded, std::string_view whole) {
  return blanked(folded) == blanked(whole);
}

}  // namespace werk::test
