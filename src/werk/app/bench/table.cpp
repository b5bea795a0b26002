#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cmath>
#include <map>

#include "werk/app/bench/report.hpp"
#include "werk/base/text.hpp"

namespace werk::app::bench {
namespace {

constexpr std::size_t kColumns = 80;
constexpr std::size_t kErrorsShown = 5;

// A line of at most 80 columns; what doesn't fit goes on below, indented.
void append_wrapped(std::string& out, std::string_view text) {
  constexpr std::string_view kIndent = "   ";
  std::size_t room = kColumns;
  bool begun = false;
  while (!text.empty()) {
    std::size_t end = text.size();
    if (end > room) {
      const std::size_t blank = text.rfind(' ', room);
      end = blank == std::string_view::npos || blank == 0 ? std::min(text.find(' '), end) : blank;
    }
    out += fmt::format("{}{}\n", begun ? kIndent : "", text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    room = kColumns - kIndent.size();
    begun = true;
  }
}

std::string server_text(const ServerRecord& server) {
  return server.version.empty() ? server.url : fmt::format("{} ({})", server.url, server.version);
}

std::string prompts_text(const Prompts& prompts) {
  switch (prompts.kind) {
    case PromptKind::fixed: return "one short prompt";
    case PromptKind::file: return fmt::format("{} prompts of a file", prompts.members.size());
    case PromptKind::made: break;
  }
  return fmt::format("prompts of about {} tokens{}", prompts.tokens,
                     prompts.shared_tokens == 0
                         ? std::string()
                         : fmt::format(" behind {} that they share", prompts.shared_tokens));
}

std::string heading(const Session& session) {
  const Plan& plan = session.plan;
  std::string text;
  if (session.against) {
    append_wrapped(text, "A: " + server_text(session.first));
    append_wrapped(text, "B: " + server_text(*session.against));
  } else {
    append_wrapped(text, server_text(session.first));
  }
  append_wrapped(
      text, fmt::format("{}; {} requests a run, {} tokens at most, {}, {} dialect{}",
                        fmt::join(plan.models, ", "), plan.requests, plan.max_tokens,
                        prompts_text(plan.prompts), name_of(plan.dialect),
                        session.start_state.empty() ? std::string() : ", " + session.start_state));
  return text;
}

std::string or_dash(const std::optional<double>& value) {
  return value ? number_text(*value) : "-";
}

std::optional<double> at(const std::optional<Percentiles>& found, double Percentiles::*which) {
  return found ? std::optional((*found).*which) : std::nullopt;
}

std::string run_line(const Session& session, const RunRecord& run) {
  const RunFigures figures = figures_of(run);
  const bool all = figures.succeeded == run.requests.size();
  const std::string ok = all ? std::to_string(figures.succeeded)
                             : fmt::format("{}/{}", figures.succeeded, run.requests.size());
  std::string line = fmt::format("{:>7}", name_of(run.level));
  if (session.against) line += run.side == Side::first ? " A" : " B";
  line += fmt::format("{:>8}{:>8}{:>7}", ok, or_dash(figures.tokens_per_second),
                      or_dash(figures.request_tokens_per_second));
  using P = Percentiles;
  for (const auto& [found, which] : {std::pair{&figures.ttft, &P::p50},
                                     {&figures.ttft, &P::p95},
                                     {&figures.total, &P::p50},
                                     {&figures.total, &P::p95},
                                     {&figures.inter_token, &P::p50},
                                     {&figures.inter_token, &P::p99}}) {
    line += fmt::format("{:>8}", time_text(at(*found, which)));
  }
  if (run.discarded) line += " (warm-up)";
  return line + "\n";
}

std::string runs_table(const Session& session) {
  const std::string_view side = session.against ? "  " : "";
  std::string text = fmt::format(
      "\n{}{:>30}{:>16}{:>16}{:>16}\n{:>7}{}{:>8}{:>8}{:>7}{:>8}{:>8}{:>8}{:>8}{:>8}{:>8}\n", side,
      "TOKENS/S", "FIRST TOKEN", "WHOLE ANSWER", "BETWEEN TOKENS",
      session.plan.levels.front().callers > 0 ? "CALLERS" : "RATE", side, "OK", "ALL", "EACH",
      "50%", "95%", "50%", "95%", "50%", "99%");
  for (const RunRecord& run : session.runs) {
    // What only warmed up is in the file, not in the table.
    if (!run.discarded) text += run_line(session, run);
  }
  return text;
}

std::string ratio_text(const Summary& summary) {
  if (summary.pairs == 0) return fmt::format("{:>22}", "-");
  return fmt::format("{:>7.3f} {:>14}", summary.median,
                     fmt::format("({:.3f}-{:.3f})", summary.low, summary.high));
}

std::string ratios_table(const Session& session) {
  const std::vector<LevelRatios> all = ratios_of(session);
  if (all.empty()) return {};
  std::string text =
      fmt::format("\nA / B, median of the pairs and their range\n{:>7}{:>22}{:>22}{:>22}{:>6}\n",
                  session.plan.levels.front().callers > 0 ? "CALLERS" : "RATE", "TOKENS/S",
                  "FIRST TOKEN 50%", "WHOLE ANSWER 50%", "PAIRS");
  for (const LevelRatios& ratios : all) {
    const Summary& tokens = ratios.tokens_per_second;
    const Summary& total = ratios.total_p50;
    text += fmt::format("{:>7}{}{}{}{:>6}\n", name_of(ratios.level), ratio_text(tokens),
                        ratio_text(ratios.ttft_p50), ratio_text(total), total.pairs);
    if (total.dropped > 0) {
      text += fmt::format("{:>7} {} pair{} dropped: B took over twice its own best\n", "",
                          total.dropped, total.dropped == 1 ? "" : "s");
    }
  }
  return text;
}

std::string errors_text(const Session& session) {
  std::map<std::string, std::size_t> counts;
  for (const RunRecord& run : session.runs) {
    for (const RequestRecord& request : run.requests) {
      if (request.ended && !request.error.empty()) ++counts[request.error];
    }
  }
  std::string text;
  std::size_t shown = 0;
  for (const auto& [error, count] : counts) {
    if (shown++ == kErrorsShown) {
      text += fmt::format("and {} other errors (in the file)\n", counts.size() - kErrorsShown);
      break;
    }
    append_wrapped(text, fmt::format("{} failed: {}", count, error));
  }
  return text.empty() ? text : "\n" + text;
}

}  // namespace

std::string name_of(const Level& level) {
  return level.callers > 0 ? std::to_string(level.callers)
                           : fmt::format("{}/s", number_text(level.rate));
}

std::string number_text(double value) {
  if (value == 0) return "0";
  const int digits = static_cast<int>(std::floor(std::log10(std::abs(value)))) + 1;
  return fmt::format("{:.{}f}", value, std::clamp(3 - digits, 0, 4));
}

std::string time_text(std::optional<double> seconds) {
  if (!seconds) return "-";
  if (*seconds < 0.9995) return number_text(*seconds * 1000) + "ms";
  return number_text(*seconds) + "s";
}

std::string table_of(const Session& session) {
  std::string text = heading(session);
  if (!session.runs.empty()) text += runs_table(session);
  text += ratios_table(session);
  text += errors_text(session);
  if (!session.notes.empty()) text += "\n";
  for (const std::string& note : session.notes) append_wrapped(text, "note: " + note);
  if (session.interrupted) text += "\ninterrupted; what was measured until then is above\n";
  return text;
}

}  // namespace werk::app::bench
