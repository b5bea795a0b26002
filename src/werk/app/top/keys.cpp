#include "werk/app/top/keys.hpp"

namespace werk::app::top {
namespace {

constexpr char32_t kCtrlL = 0x0C;

Action in_table(char32_t character) {
  switch (character) {
    case 'q': return {ActionId::quit};
    case 'h':
    case '?': return {ActionId::help};
    case 'k': return {ActionId::up};
    case 'j': return {ActionId::down};
    case 'g': return {ActionId::first};
    case 'G': return {ActionId::last};
    case '<': return {ActionId::sort_left};
    case '>': return {ActionId::sort_right};
    case 'r': return {ActionId::reverse};
    case '/': return {ActionId::filter};
    case 'p': return {ActionId::pin};
    case 'u': return {ActionId::unload};
    case kCtrlL: return {ActionId::redraw};
    default: break;
  }
  if (character >= 'A' && character <= 'Z') return {ActionId::sort_by, character};
  return {};
}

Action in_table(const Key& key) {
  switch (key.name) {
    case KeyName::character: return in_table(key.character);
    case KeyName::up: return {ActionId::up};
    case KeyName::down: return {ActionId::down};
    case KeyName::page_up: return {ActionId::page_up};
    case KeyName::page_down: return {ActionId::page_down};
    case KeyName::home: return {ActionId::first};
    case KeyName::end: return {ActionId::last};
    case KeyName::tab:
    case KeyName::back_tab: return {ActionId::other_pane};
    case KeyName::escape: return {ActionId::close};
    case KeyName::f1: return {ActionId::help};
    case KeyName::f4: return {ActionId::filter};
    case KeyName::f10: return {ActionId::quit};
    default: return {};
  }
}

Action in_filter(const Key& key) {
  switch (key.name) {
    case KeyName::character:
      if (key.character < 0x20 || key.character == 0x7F) return {};
      return {ActionId::type, key.character};
    case KeyName::backspace: return {ActionId::erase};
    case KeyName::enter: return {ActionId::accept};
    case KeyName::escape: return {ActionId::close};
    case KeyName::up: return {ActionId::up};
    case KeyName::down: return {ActionId::down};
    default: return {};
  }
}

// Anything but a yes is a no.
Action in_question(const Key& key) {
  const bool yes = key.name == KeyName::character && (key.character == 'y' || key.character == 'Y');
  return {yes ? ActionId::yes : ActionId::close};
}

}  // namespace

Action action_for(const Key& key, Mode mode) {
  switch (mode) {
    case Mode::table: return in_table(key);
    case Mode::filter: return in_filter(key);
    case Mode::question: return in_question(key);
    case Mode::help: return {ActionId::close};
  }
  return {};
}

const std::vector<KeyHelp>& key_help() {
  static const std::vector<KeyHelp> help = {
      {"up, down, k, j", "select; page up and down, home and end (g, G) go further"},
      {"Tab", "between what is loaded and the calls"},
      {"/ or F4", "show only what holds a text; Enter keeps it, Esc ends it"},
      {"< >", "sort by the column to the left, to the right"},
      {"a capital letter", "sort by that column:", NamesColumns::yes},
      {"r", "the other way round"},
      {"p", "pin the selected model, or unpin it"},
      {"u", "unload the selected model: its calls end first"},
      {"q, F10, Ctrl-C", "quit"},
  };
  return help;
}

}  // namespace werk::app::top
