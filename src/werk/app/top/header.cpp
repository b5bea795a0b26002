#include "werk/app/top/header.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "werk/app/top/figures.hpp"

namespace werk::app::top {
namespace {

constexpr std::size_t kBarColumns = 20;
constexpr std::string_view kGap = "  ";

// "name value", the value strong.
Line fact(std::string_view name, std::string value, Style style = Style::strong) {
  return {{fmt::format("{} ", name), Style::normal}, {std::move(value), style}};
}

// The parts beside each other as far as they fit.
Line beside(const std::vector<Line>& parts, std::size_t columns) {
  Line line;
  std::size_t width = 0;
  for (const Line& part : parts) {
    const std::size_t gap = line.empty() ? 0 : kGap.size();
    const std::size_t more = display_width(part);
    if (width + gap + more > columns) {
      // The first says what the line is about, even cut.
      return line.empty() ? clipped(part, columns) : line;
    }
    if (gap > 0) line.push_back({std::string(kGap)});
    line.insert(line.end(), part.begin(), part.end());
    width += gap + more;
  }
  return line;
}

Span condition(const State& state, const Link& link) {
  if (link.condition == Link::Condition::lost) {
    return {
        fmt::format("no answer for {}: {}", age_text(static_cast<double>(link.picture_age.count())),
                    on_one_line(link.reason)),
        Style::bad};
  }
  if (state.node.draining) return {"draining", Style::warning};
  if (state.node.ready.value_or(true)) return {"ready", Style::good};
  return {fmt::format("not ready: {}", on_one_line(state.node.not_ready)), Style::bad};
}

Line first_line(const State& state, const Link& link, std::size_t columns) {
  const Span told = condition(state, link);
  Line name = {{"Werk", Style::strong}};
  if (!state.node.version.empty())
    name.push_back({fmt::format(" {}", on_one_line(state.node.version))});
  const Line address = {{on_one_line(link.address)}};
  const Line up = fact("up", age_text(state.node.uptime_s), Style::normal);
  // What is wrong is more than where it is.
  if (link.condition == Link::Condition::lost || told.style == Style::bad)
    return beside(
        {name, {{clipped({told}, columns - std::min(columns, display_width(name) + 2))}}, address},
        columns);
  return beside({name, {told}, address, up}, columns);
}

Line slots_bar(const Totals& totals) {
  const std::uint64_t slots = totals.slots.value_or(0);
  const std::string figures = fmt::format("{}/{}", totals.slots_busy, slots);
  std::size_t filled = 0;
  if (slots > 0) {
    filled = static_cast<std::size_t>((totals.slots_busy * kBarColumns + slots - 1) / slots);
    filled = std::min(filled, kBarColumns);
  }
  std::string bar = std::string(filled, '|') + std::string(kBarColumns - filled, ' ');
  // The figures stand in the bar, over its end.
  const std::size_t at = kBarColumns - std::min(kBarColumns, figures.size());
  bar.replace(at, std::string::npos, figures.substr(0, kBarColumns));
  return {{"Slots ["}, {bar.substr(0, at), Style::good}, {bar.substr(at), Style::strong}, {"]"}};
}

Line rates_line(const State& state, const Totals& totals, std::size_t columns) {
  const std::uint64_t waiting = state.counts.waiting.value_or(0);
  return beside({slots_bar(totals),
                 fact("waiting", count_text(state.counts.waiting),
                      waiting > 0 ? Style::warning : Style::strong),
                 fact("tokens/s", rate_text(totals.output_tokens_per_second)),
                 fact("cached", share_text(totals.cached_share))},
                columns);
}

Line calls_line(const State& state, std::size_t columns) {
  const CallCounts& counts = state.counts;
  const bool failures = counts.failed.value_or(0) > 0;
  std::string active = count_text(counts.active);
  if (state.calls_left_off.value_or(0) > 0)
    active += fmt::format(" ({} not listed)", *state.calls_left_off);
  return beside({fact("Calls active", std::move(active)), fact("served", count_text(counts.served)),
                 fact("failed", count_text(counts.failed), failures ? Style::bad : Style::strong),
                 fact("cancelled", count_text(counts.cancelled))},
                columns);
}

Line machine_line(const State& state, const Totals& totals, std::size_t columns) {
  return beside(
      {fact("Memory engines", bytes_text(totals.memory_bytes)),
       fact("node", bytes_text(state.node.memory_bytes)),
       fact("lag",
            state.node.loop_lag_s ? fmt::format("{:.1f}ms", *state.node.loop_lag_s * 1000) : "-"),
       fact("connections", count_text(state.node.connections)),
       fact("files", count_text(state.node.open_files))},
      columns);
}

Line pools_line(const State& state, std::size_t columns) {
  std::vector<Line> parts;
  for (const Pool& pool : state.pools) {
    std::string use = count_text(pool.resident);
    if (pool.capacity) use += "/" + count_text(pool.capacity);
    if (pool.starting.value_or(0) > 0) use += fmt::format(" ({} starting)", *pool.starting);
    const std::string name =
        fmt::format("{}{}", parts.empty() ? "Pools " : "", on_one_line(pool.name));
    parts.push_back(fact(name, std::move(use)));
  }
  std::string absent;
  for (const std::string& pin : state.pins) {
    if (std::ranges::find(state.runtimes, pin, &Runtime::model) != state.runtimes.end()) continue;
    absent += fmt::format("{}{}", absent.empty() ? "" : ", ", on_one_line(pin));
  }
  if (!absent.empty()) parts.push_back(fact("pinned, not loaded", absent, Style::warning));
  return beside(parts, columns);
}

}  // namespace

std::vector<Line> header(const State& state, const Link& link, std::size_t columns) {
  const Totals totals = totals_of(state);
  return {first_line(state, link, columns), rates_line(state, totals, columns),
          calls_line(state, columns), machine_line(state, totals, columns),
          pools_line(state, columns)};
}

}  // namespace werk::app::top
