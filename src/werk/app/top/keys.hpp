// What a key means to `werk top`: a key of the terminal becomes an action, by what the screen is at
// (a table, a filter that is being typed, a question, the help). Pure; any thread.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace werk::app::top {

enum class KeyName : std::uint8_t {
  character,
  up,
  down,
  page_up,
  page_down,
  home,
  end,
  tab,
  back_tab,
  enter,
  escape,
  backspace,
  f1,
  f4,
  f10,
  other,
};

struct Key {
  KeyName name = KeyName::other;
  char32_t character = 0;  // of KeyName::character
};

enum class Mode : std::uint8_t { table, filter, question, help };

enum class ActionId : std::uint8_t {
  none,
  quit,
  help,
  close,  // the help, a filter, a question: as if it had not been
  up,
  down,
  page_up,
  page_down,
  first,
  last,
  other_pane,
  sort_right,
  sort_left,
  sort_by,  // the column of that letter
  reverse,
  filter,
  type,
  erase,
  accept,
  pin,
  unload,
  yes,
  redraw,
};

struct Action {
  ActionId id = ActionId::none;
  char32_t character = 0;  // of sort_by and type
};

Action action_for(const Key& key, Mode mode);

enum class NamesColumns : std::uint8_t { no, yes };

struct KeyHelp {
  std::string_view keys;
  std::string_view about;
  NamesColumns names_columns = NamesColumns::no;  // the table's columns follow
};
const std::vector<KeyHelp>& key_help();

}  // namespace werk::app::top
