#include "bench/support/report.hpp"

#include <boost/json.hpp>
#include <cstdio>

namespace werk::bench {
namespace {

std::string_view name_of(Better better) {
  switch (better) {
    case Better::higher: return "higher";
    case Better::lower: return "lower";
    case Better::equal: return "equal";
    case Better::none: return "none";
  }
  return "none";
}

}  // namespace

void report(const Figure& figure) {
  const boost::json::object line{{"goal", figure.goal},
                                 {"name", figure.name},
                                 {"unit", figure.unit},
                                 {"median", figure.summary.median},
                                 {"low", figure.summary.low},
                                 {"high", figure.summary.high},
                                 {"pairs", figure.summary.pairs},
                                 {"dropped", figure.summary.dropped},
                                 {"pairs_wanted", figure.pairs_wanted},
                                 {"better", name_of(figure.better)},
                                 {"bar", figure.bar},
                                 {"moonshot", figure.moonshot},
                                 {"note", figure.note}};
  fmt::print("{}\n", boost::json::serialize(line));
  std::fflush(stdout);
  say(fmt::format("{} {}: {:.4g} ({:.4g} to {:.4g}) {} {}", figure.goal, figure.name,
                  figure.summary.median, figure.summary.low, figure.summary.high, figure.unit,
                  figure.note));
}

Summary single(double value) { return {value, value, value, 1, 0}; }

void report_left_out(const std::string& text) {
  fmt::print("{}\n", boost::json::serialize(boost::json::object{{"left_out", text}}));
  std::fflush(stdout);
  say("not measured: " + text);
}

void say(const std::string& text) { fmt::print(stderr, "bench: {}\n", text); }

}  // namespace werk::bench
