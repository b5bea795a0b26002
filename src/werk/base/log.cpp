#include "werk/base/log.hpp"

#include <spdlog/async.h>
#include <spdlog/async_logger.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <cstdlib>
#include <memory>

namespace werk::log {
namespace {

constexpr std::size_t kQueuedLines = 8192;
constexpr const char* kPattern = "%Y-%m-%d %H:%M:%S.%e %^%-5l%$ %v";

spdlog::level::level_enum to_spdlog(Level level) {
  switch (level) {
    case Level::trace: return spdlog::level::trace;
    case Level::debug: return spdlog::level::debug;
    case Level::info: return spdlog::level::info;
    case Level::warn: return spdlog::level::warn;
    case Level::error: return spdlog::level::err;
    case Level::off: return spdlog::level::off;
  }
  return spdlog::level::info;
}

// Two loggers over one sink: `direct` writes at once, `queued` exists between start() and stop().
struct Writers {
  std::shared_ptr<spdlog::sinks::stderr_color_sink_mt> sink =
      std::make_shared<spdlog::sinks::stderr_color_sink_mt>();
  std::shared_ptr<spdlog::logger> direct = std::make_shared<spdlog::logger>("werk", sink);
  std::shared_ptr<spdlog::details::thread_pool> pool;
  std::shared_ptr<spdlog::logger> queued;

  Writers() {
    const char* unwanted = std::getenv("NO_COLOR");
    if (unwanted != nullptr && *unwanted != '\0') sink->set_color_mode(spdlog::color_mode::never);
    sink->set_pattern(kPattern);
    direct->set_level(spdlog::level::warn);
  }
  spdlog::logger& active() { return queued ? *queued : *direct; }
};

Writers& writers() {
  static Writers instance;
  return instance;
}

}  // namespace

void start(Level level) {
  Writers& w = writers();
  w.pool = std::make_shared<spdlog::details::thread_pool>(kQueuedLines, 1);
  w.queued = std::make_shared<spdlog::async_logger>("werk", w.sink, w.pool,
                                                    spdlog::async_overflow_policy::overrun_oldest);
  set_level(level);
}

void stop() {
  Writers& w = writers();
  if (!w.queued) return;
  w.queued->flush();
  w.queued.reset();
  w.pool.reset();  // joins the thread after the queue is written
}

void set_level(Level level) {
  Writers& w = writers();
  w.direct->set_level(to_spdlog(level));
  if (w.queued) w.queued->set_level(to_spdlog(level));
}

bool enabled(Level level) { return writers().active().should_log(to_spdlog(level)); }

std::uint64_t dropped() {
  Writers& w = writers();
  return w.pool ? w.pool->overrun_counter() : 0;
}

void write(Level level, std::string_view line) {
  writers().active().log(to_spdlog(level), spdlog::string_view_t(line.data(), line.size()));
}

}  // namespace werk::log
