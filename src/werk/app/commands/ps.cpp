#include "werk/app/commands/ps.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <boost/json/array.hpp>
#include <set>
#include <vector>

#include "werk/app/node_page.hpp"
#include "werk/app/progress.hpp"
#include "werk/app/terminal.hpp"
#include "werk/base/text.hpp"
#include "werk/base/timestamp.hpp"

namespace werk::app {

namespace json = boost::json;

namespace {

constexpr std::size_t kColumns = 9;
constexpr std::size_t kModelMin = 12;
using Row = std::array<std::string, kColumns>;
// Numbers stand at the right of their column.
constexpr std::array<bool, kColumns> kRight = {false, false, false, true, true,
                                               true,  true,  true,  false};

std::string or_dash(const std::optional<std::uint64_t>& count) {
  return count ? std::to_string(*count) : "-";
}

std::string since_text(const std::string& since, std::chrono::system_clock::time_point now) {
  const auto time = time_of(since);
  if (!time) return "-";
  const auto age = std::chrono::duration_cast<std::chrono::seconds>(now - *time);
  return readable_duration(std::max(age, std::chrono::seconds(0)));
}

Row row_of(const json::object& runtime, std::chrono::system_clock::time_point now) {
  const json::object& slots = object_in(runtime, "slots");
  const auto busy = count_in(slots, "busy");
  const auto memory = count_in(runtime, "memory_bytes");
  return {shown_text(text_in(runtime, "model")),
          shown_text(text_in(runtime, "engine")),
          shown_text(text_in(runtime, "state")),
          busy ? fmt::format("{}/{}", *busy, or_dash(count_in(slots, "total"))) : "-",
          std::to_string(count_in(runtime, "waiting").value_or(0)),
          memory ? readable_bytes(*memory) : "-",
          or_dash(count_in(runtime, "pid")),
          since_text(text_in(runtime, "since"), now),
          truth_in(runtime, "pinned").value_or(false) ? "yes" : ""};
}

// Bytes are taken for columns: names in other scripts stand a little apart.
std::string shortened(const std::string& text, std::size_t columns) {
  if (text.size() <= columns) return text;
  return printable(text.substr(0, columns - 3)) + "...";
}

std::string laid_out(std::vector<Row> rows, std::size_t columns) {
  std::array<std::size_t, kColumns> widths{};
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < kColumns; ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::size_t gap = 2;
  std::size_t others = 0;
  for (std::size_t i = 1; i < kColumns; ++i) others += widths[i];
  const auto room = [&] { return columns - std::min(columns, others + gap * (kColumns - 1)); };
  if (columns > 0 && widths[0] > room()) {
    if (room() < kModelMin) gap = 1;
    widths[0] = std::min(widths[0], std::max(kModelMin, room()));
  }
  std::string text;
  for (const Row& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < kColumns; ++i) {
      const std::string cell = i == 0 ? shortened(row[i], widths[0]) : row[i];
      line += kRight[i] ? fmt::format("{:>{}}", cell, widths[i])
                        : fmt::format("{:<{}}", cell, widths[i]);
      if (i + 1 < kColumns) line.append(gap, ' ');
    }
    while (line.ends_with(' ')) line.pop_back();
    text += line + "\n";
  }
  return text;
}

}  // namespace

std::string ps_table(const json::object& page, std::chrono::system_clock::time_point now,
                     std::size_t columns) {
  std::vector<Row> rows = {
      {"MODEL", "ENGINE", "STATE", "SLOTS", "WAIT", "MEMORY", "PID", "SINCE", "PIN"}};
  std::set<std::string> shown;
  for (const json::value& runtime : array_in(page, "runtimes")) {
    if (!runtime.is_object()) continue;
    rows.push_back(row_of(runtime.get_object(), now));
    shown.insert(rows.back().front());
  }
  std::string text = rows.size() > 1 ? laid_out(std::move(rows), columns)
                                     : "nothing is loaded; `werk load MODEL` loads a model, and so "
                                       "does the first call for it\n";
  std::vector<std::string> absent;
  for (const json::value& pin : array_in(page, "pins")) {
    const std::string id = pin.is_string() ? shown_text(pin.get_string()) : std::string();
    if (!id.empty() && !shown.contains(id)) absent.push_back(id);
  }
  if (!absent.empty()) text += fmt::format("pinned, not loaded: {}\n", fmt::join(absent, ", "));
  return text;
}

}  // namespace werk::app
