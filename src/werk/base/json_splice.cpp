#include "werk/base/json_splice.hpp"

#include <algorithm>

#include "werk/base/assert.hpp"
#include "werk/base/json_cursor.hpp"

namespace werk {

void JsonSplice::replace(ByteRange range, std::string replacement) {
  WERK_ASSERT(range.begin <= range.end && range.end <= text_.size());
  constexpr std::size_t kUsual = 8;
  if (edits_.empty()) edits_.reserve(kUsual);
  edits_.push_back(Edit{range, std::move(replacement)});
}

std::string JsonSplice::apply() const {
  std::vector<const Edit*> ordered;
  ordered.reserve(edits_.size());
  std::size_t size = text_.size();
  for (const Edit& edit : edits_) {
    ordered.push_back(&edit);
    size += edit.replacement.size();
  }
  std::ranges::stable_sort(
      ordered, {}, [](const Edit* edit) { return std::pair(edit->range.begin, edit->range.end); });
  std::string out;
  out.reserve(size);
  std::size_t at = 0;
  for (const Edit* edit : ordered) {
    WERK_ASSERT(edit->range.begin >= at);
    out.append(text_.substr(at, edit->range.begin - at));
    out.append(edit->replacement);
    at = edit->range.end;
  }
  out.append(text_.substr(at));
  return out;
}

JsonObjectEditor::JsonObjectEditor(JsonSplice& splice, std::string_view object)
    : splice_(splice), object_(range_in(splice.text(), object)) {
  WERK_ASSERT(object.size() >= 2 && object.front() == '{');
  constexpr std::size_t kUsual = 8;
  places_.reserve(kUsual);
  JsonObjectCursor cursor(object);
  while (const auto member = cursor.next()) {
    const ByteRange name = range_in(splice.text(), member->name);
    const ByteRange value = range_in(splice.text(), member->value);
    places_.push_back(Place{ByteRange{name.begin - 1, name.end + 1}, value, false, {}, {}});
  }
}

std::string_view JsonObjectEditor::name_at(const Place& place) const {
  return splice_.text().substr(place.name.begin + 1, place.name.size() - 2);
}

bool JsonObjectEditor::is(const Place& place, std::string_view key) const {
  return !place.removed && JsonMemberView{name_at(place), {}}.is(key);
}

std::string_view JsonObjectEditor::value(std::string_view key) const {
  const auto found =
      std::ranges::find_if(places_, [&](const Place& place) { return is(place, key); });
  return found == places_.end() ? std::string_view() : found->value.in(splice_.text());
}

void JsonObjectEditor::set(std::string_view key, std::string json) {
  for (Place& place : places_) {
    if (!is(place, key)) continue;
    place.new_value = std::move(json);
    return;
  }
  added_.emplace_back(key, std::move(json));
}

void JsonObjectEditor::remove(std::string_view key) {
  for (Place& place : places_) {
    if (is(place, key)) place.removed = true;
  }
}

void JsonObjectEditor::rename(std::string_view key, std::string_view new_key) {
  for (Place& place : places_) {
    if (!is(place, key)) continue;
    place.new_name = to_json_string(new_key);
    return;
  }
}

void JsonObjectEditor::remove_nulls(std::string_view kept) {
  for (Place& place : places_) {
    if (place.new_value || place.value.in(splice_.text()) != "null") continue;
    if (kept.empty() || !is(place, kept)) place.removed = true;
  }
}

std::size_t JsonObjectEditor::size() const {
  return added_.size() + static_cast<std::size_t>(std::ranges::count_if(
                             places_, [](const Place& place) { return !place.removed; }));
}

// A removed member takes the comma before it with it if a member stays before it, else the one
// after it.
void JsonObjectEditor::commit() {
  bool stays = false;
  for (std::size_t i = 0; i < places_.size(); ++i) {
    Place& place = places_[i];
    if (!place.removed) {
      stays = true;
      if (place.new_name) splice_.replace(place.name, std::move(*place.new_name));
      if (place.new_value) splice_.replace(place.value, std::move(*place.new_value));
      continue;
    }
    ByteRange gone{place.name.begin, place.value.end};
    if (stays) {
      gone.begin = places_[i - 1].value.end;
    } else if (i + 1 < places_.size()) {
      gone.end = places_[i + 1].name.begin;
    }
    splice_.replace(gone, {});
  }
  std::string text;
  for (const auto& [key, json] : added_) {
    if (stays) text.push_back(',');
    stays = true;
    append_json_string(text, key);
    text.push_back(':');
    text += json;
  }
  if (!text.empty())
    splice_.insert(places_.empty() ? object_.begin + 1 : places_.back().value.end, std::move(text));
}

}  // namespace werk
