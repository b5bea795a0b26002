#include "werk/base/text.hpp"

#include <gtest/gtest.h>

namespace werk {
namespace {

TEST(NearNames, OffersTheMistypedNameAndNothingFarAway) {
  const std::vector<std::string> known = {"smollm2", "qwen2.5-coder", "phi-3"};
  EXPECT_EQ(near_names("smolm2", known), std::vector<std::string>{"smollm2"});
  EXPECT_EQ(near_names("qwen", known), std::vector<std::string>{"qwen2.5-coder"});
  EXPECT_TRUE(near_names("zzzzzzzz", known).empty());
}

TEST(ShellWords, SplitsAsAPosixShellDoes) {
  const auto words = shell_words(R"(-c 4096  'a b' "c \"d\" \n" e\ f '')");
  ASSERT_TRUE(words);
  EXPECT_EQ(*words, (std::vector<std::string>{"-c", "4096", "a b", "c \"d\" \\n", "e f", ""}));
}

TEST(ShellWords, AnUnclosedQuoteIsAnError) {
  EXPECT_FALSE(shell_words("'abc"));
  EXPECT_FALSE(shell_words("\"abc"));
  EXPECT_FALSE(shell_words("abc\\"));
}

TEST(ShellLine, IsReadBackAsTheSameWords) {
  const std::vector<std::string> words = {"plain", "a b", "it's", "", "$HOME", "x\ny"};
  EXPECT_EQ(*shell_words(shell_line(words)), words);
}

TEST(Printable, ReplacesWhatIsNotUtf8) {
  EXPECT_EQ(printable("ok \xFF\x01 \xE2\x82\xAC"), "ok \xEF\xBF\xBD? \xE2\x82\xAC");
}

TEST(ValidUtf8, RefusesSurrogatesOverlongFormsAndCutSequences) {
  EXPECT_TRUE(is_valid_utf8("a\xF0\x9F\x98\x80\xE2\x82\xAC"));
  EXPECT_FALSE(is_valid_utf8("\xED\xA0\x80"));
  EXPECT_FALSE(is_valid_utf8("\xC0\x80"));
  EXPECT_FALSE(is_valid_utf8("\xF0\x9F\x98"));
  EXPECT_FALSE(is_valid_utf8("\xF4\x90\x80\x80"));
}

TEST(ReadableBytes, UsesDecimalUnits) {
  EXPECT_EQ(readable_bytes(999), "999 B");
  EXPECT_EQ(readable_bytes(98'362'432), "98.4 MB");
}

}  // namespace
}  // namespace werk
