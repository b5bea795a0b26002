#include "tests/e2e/metrics_page.hpp"

#include <algorithm>
#include <stdexcept>

namespace werk::test {

namespace {

bool is_of(std::string_view series, std::string_view name) {
  return series.substr(0, series.find('{')) == name;
}

}  // namespace

MetricsPage::MetricsPage(std::string_view text) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.empty() || line.starts_with('#')) continue;
    const std::size_t blank = line.rfind(' ');
    if (blank == std::string_view::npos) throw std::runtime_error("no value: " + std::string(line));
    const double value = std::stod(std::string(line.substr(blank + 1)));
    if (!values_.emplace(line.substr(0, blank), value).second)
      throw std::runtime_error("twice: " + std::string(line));
  }
}

double MetricsPage::sum(std::string_view name,
                        std::initializer_list<std::string_view> labels) const {
  double sum = 0;
  for (const auto& [series, value] : values_) {
    const bool fits = is_of(series, name) && std::ranges::all_of(labels, [&](std::string_view one) {
                        return series.find(one) != std::string::npos;
                      });
    if (fits) sum += value;
  }
  return sum;
}

std::size_t MetricsPage::series(std::string_view name) const {
  return static_cast<std::size_t>(
      std::ranges::count_if(values_, [&](const auto& one) { return is_of(one.first, name); }));
}

}  // namespace werk::test
