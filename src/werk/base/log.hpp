// The log: lines on standard error, written by one background thread so that a slow terminal or
// disk never blocks the loop (when it falls behind, the oldest lines are dropped and counted).
// Before start_log() and after stop_log() lines are written at once by the caller's thread, so
// tests and short commands need neither. Callable from any thread. Never logged: keys, prompts,
// answers.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string_view>

namespace werk::log {

enum class Level : std::uint8_t { trace, debug, info, warn, error, off };

// Starts the background thread. Call once, before the loop runs; stop() writes what is queued and
// ends the thread.
void start(Level level);
void stop();
void set_level(Level level);
bool enabled(Level level);

// How many lines were dropped because the writer fell behind.
std::uint64_t dropped();

void write(Level level, std::string_view line);

template <class... Args>
void debug(fmt::format_string<Args...> text, Args&&... args) {
  if (enabled(Level::debug)) write(Level::debug, fmt::format(text, std::forward<Args>(args)...));
}
template <class... Args>
void info(fmt::format_string<Args...> text, Args&&... args) {
  if (enabled(Level::info)) write(Level::info, fmt::format(text, std::forward<Args>(args)...));
}
template <class... Args>
void warn(fmt::format_string<Args...> text, Args&&... args) {
  if (enabled(Level::warn)) write(Level::warn, fmt::format(text, std::forward<Args>(args)...));
}
template <class... Args>
void error(fmt::format_string<Args...> text, Args&&... args) {
  if (enabled(Level::error)) write(Level::error, fmt::format(text, std::forward<Args>(args)...));
}

}  // namespace werk::log
