// How members of Settings are set and shown, for the rows of the option table: one template for
// each kind of value. Stateless; for the table's source files alone, any thread.
#pragma once

#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>

#include "werk/app/setting_values.hpp"
#include "werk/app/settings.hpp"
#include "werk/base/text.hpp"

namespace werk::app {

// What a member of whatever type reads like, and as which text it is set again.
inline std::string text_of(const std::string& value) { return value; }
inline std::string text_of(std::chrono::milliseconds value) { return duration_text(value); }
template <class Number>
std::string text_of(const Number& value) requires std::is_integral_v<Number> {
  return fmt::to_string(value);
}
template <class Value>
std::string text_of(const std::optional<Value>& value) {
  return value ? text_of(*value) : std::string();
}

// Into a member that may be unset or is always there.
template <class Member>
Status read_number_into(const std::string& value, std::uint64_t least, std::uint64_t most,
                        Member& member) {
  if constexpr (std::is_integral_v<Member>) {
    return read_number<Member>(value, static_cast<Member>(least), static_cast<Member>(most),
                               member);
  } else {
    using Number = typename Member::value_type;
    return read_number<Number>(value, static_cast<Number>(least), static_cast<Number>(most),
                               member);
  }
}

template <auto Member>
std::string show(const Settings& settings) {
  return text_of(settings.*Member);
}

template <auto Member>
constexpr Access text = {[](Settings& settings, const std::string& value) -> Status {
                           settings.*Member = value;
                           return {};
                         },
                         show<Member>};

template <auto Member>
constexpr Access time = {[](Settings& settings, const std::string& value) -> Status {
                           auto duration = parse_duration(value);
                           if (!duration) return pass_on(duration);
                           settings.*Member = *duration;
                           return {};
                         },
                         show<Member>};

template <auto Member, std::uint64_t Least, std::uint64_t Most>
constexpr Access number = {[](Settings& settings, const std::string& value) {
                             return read_number_into(value, Least, Most, settings.*Member);
                           },
                           show<Member>};

}  // namespace werk::app
