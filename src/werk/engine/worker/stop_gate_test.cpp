#include "werk/engine/worker/stop_gate.hpp"

#include <gtest/gtest.h>

namespace werk::engine::worker {
namespace {

struct Outcome {
  std::string text;
  std::optional<std::string> stop;
  bool operator==(const Outcome&) const = default;
};

Outcome run(std::vector<std::string> stops, const std::vector<std::string_view>& pieces) {
  StopGate gate(std::move(stops));
  Outcome outcome;
  for (const std::string_view piece : pieces) gate.take(piece, outcome.text);
  gate.finish(outcome.text);
  outcome.stop = gate.matched();
  return outcome;
}

TEST(StopGate, FindsAStopStringWhereverItIsCut) {
  const std::string text = "one two\n\nUser: three";
  for (std::size_t a = 0; a <= text.size(); ++a) {
    for (std::size_t b = a; b <= text.size(); ++b) {
      const std::string_view whole = text;
      const Outcome outcome =
          run({"\n\nUser:", "four"}, {whole.substr(0, a), whole.substr(a, b - a), whole.substr(b)});
      EXPECT_EQ(outcome, (Outcome{"one two", "\n\nUser:"})) << a << ' ' << b;
    }
  }
}

TEST(StopGate, LosesNothingThatOnlyBeganLikeOne) {
  EXPECT_EQ(run({"END"}, {"E", "N", "EN", "E"}), (Outcome{"ENENE", std::nullopt}));
  EXPECT_EQ(run({"aab"}, {"aaa", "ac"}), (Outcome{"aaaac", std::nullopt}));
  EXPECT_EQ(run({"aab"}, {"aa", "ab", "z"}), (Outcome{"a", "aab"}));
}

TEST(StopGate, HoldsBackOnlyWhatMayBecomeOne) {
  StopGate gate({"stop"});
  std::string out;
  gate.take("a st", out);
  EXPECT_EQ(out, "a ");
  gate.take("ate", out);
  EXPECT_EQ(out, "a state");
}

TEST(StopGate, TakesTheEarliestAndOfThoseTheLongest) {
  EXPECT_EQ(run({"bc", "b"}, {"abcd"}), (Outcome{"a", "bc"}));
  EXPECT_EQ(run({"cd", "bcd"}, {"abcd"}), (Outcome{"a", "bcd"}));
}

TEST(StopGate, PassesEverythingWithoutStopStrings) {
  EXPECT_EQ(run({""}, {"a", "", "b"}), (Outcome{"ab", std::nullopt}));
}

}  // namespace
}  // namespace werk::engine::worker
