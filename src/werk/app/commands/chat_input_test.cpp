#include "werk/app/commands/chat_input.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace werk::app {
namespace {

std::vector<std::string> turns(const std::vector<std::string>& lines) {
  TurnJoiner joiner;
  std::vector<std::string> all;
  for (const std::string& line : lines) {
    if (auto turn = joiner.add(line)) all.push_back(std::move(*turn));
  }
  if (joiner.is_open()) all.push_back("begun: " + joiner.take());
  return all;
}

using Texts = std::vector<std::string>;

TEST(TurnJoiner, ALineIsATurn) { EXPECT_EQ(turns({"one", "", "two"}), (Texts{"one", "", "two"})); }

TEST(TurnJoiner, ABackslashAtTheEndGoesOnInTheNextLine) {
  EXPECT_EQ(turns({"one\\", "two\\", "three", "four"}), (Texts{"one\ntwo\nthree", "four"}));
}

TEST(TurnJoiner, ThreeQuotesHoldSeveralLines) {
  EXPECT_EQ(turns({"\"\"\"", "a", "", "/bye\\", "\"\"\"", "b"}), (Texts{"a\n\n/bye\\", "b"}));
  EXPECT_EQ(turns({"\"\"\"a", "b\"\"\""}), (Texts{"a\nb"}));
  EXPECT_EQ(turns({"\"\"\"in one\"\"\"", "x"}), (Texts{"in one", "x"}));
  EXPECT_EQ(turns({"say \"\"\"", "x"}), (Texts{"say \"\"\"", "x"})) << "only at the beginning";
}

TEST(TurnJoiner, ATurnThatNobodyEndedIsKept) {
  EXPECT_EQ(turns({"\"\"\"", "a", "b"}), (Texts{"begun: a\nb"}));
  EXPECT_EQ(turns({"a\\"}), (Texts{"begun: a"}));
}

}  // namespace
}  // namespace werk::app
