#include "werk/app/top/cells.hpp"

#include <gtest/gtest.h>

#include "werk/app/top/figures.hpp"
#include "werk/app/top/pages_fixture.hpp"

namespace werk::app::top {
namespace {

class Cells : public ::testing::Test {
 protected:
  Cells() { use_wide_locale(); }
};

TEST_F(Cells, WideCharactersTakeTwoColumnsAndCombiningOnesNone) {
  EXPECT_EQ(display_width("abc"), 3u);
  EXPECT_EQ(display_width("\u6a21\u578b"), 4u);
  EXPECT_EQ(display_width("e\u0301"), 1u);
  EXPECT_EQ(display_width("\U0001F980"), 2u);
}

TEST_F(Cells, ATextThatIsTooLongIsCutBetweenCharactersAndMarked) {
  EXPECT_EQ(fitted("abcdef", 6), "abcdef");
  EXPECT_EQ(fitted("abcdefg", 6), "abcde~");
  EXPECT_EQ(fitted("\u6a21\u578b\u6a21\u578b", 6), "\u6a21\u578b~ ") << "half a character is none";
  EXPECT_EQ(fitted("\u6a21\u578b", 4), "\u6a21\u578b");
  EXPECT_EQ(fitted("e\u0301e\u0301e\u0301", 2), "e\u0301~");
  EXPECT_EQ(fitted("anything", 0), "");
  EXPECT_EQ(ending("abcdef", 4), "cdef");
  EXPECT_EQ(ending("\u6a21\u578b\u6a21", 3), "\u6a21");
  EXPECT_EQ(fitted("ab", 4, Align::right), "  ab");
}

TEST_F(Cells, NothingOfWhatOthersWroteSteersTheTerminal) {
  EXPECT_EQ(on_one_line("a\x1b[2Jb"), "a?[2Jb");
  EXPECT_EQ(on_one_line("a\nb\tc\r"), "a b c?");
  EXPECT_EQ(on_one_line("a\u202Eb\u2066c"), "abc");
  EXPECT_EQ(on_one_line("a\u009B2Jb"), "a?2Jb") << "the other control characters are no better";
  EXPECT_EQ(on_one_line("a\xFFz"), "a\uFFFDz");
}

TEST_F(Cells, ALineIsClippedAcrossItsSpans) {
  const Line line = {{"ab", Style::good}, {"\u6a21c", Style::bad}, {"d"}};
  EXPECT_EQ(plain_text(clipped(line, 6)), "ab\u6a21cd");
  EXPECT_EQ(plain_text(clipped(line, 4)), "ab\u6a21");
  EXPECT_EQ(plain_text(clipped(line, 3)), "ab");
  EXPECT_EQ(clipped(line, 4).back().style, Style::bad);
}

TEST(Figures, FitTheirColumnsAndAreADashWhereNothingIsKnown) {
  EXPECT_EQ(count_text(99'999), "99999");
  EXPECT_EQ(count_text(1'234'567), "1234k");
  EXPECT_EQ(count_text(123'456'789), "123M");
  EXPECT_EQ(count_text(123'456'789'000), "123G");
  EXPECT_EQ(age_text(0.0), "0.0s");
  EXPECT_EQ(age_text(9.96), "10s");
  EXPECT_EQ(age_text(59.4), "59s");
  EXPECT_EQ(age_text(59.6), "1m00s");
  EXPECT_EQ(age_text(3599.9), "1h00m");
  EXPECT_EQ(age_text(90'000), "1d01h");
  EXPECT_EQ(rate_text(12.34), "12.3");
  EXPECT_EQ(rate_text(12'345.6), "12346");
  EXPECT_EQ(share_text(0.634), "63%");
  EXPECT_EQ(bytes_text(5'400'000'000), "5.4 GB");
  for (const std::string& unknown :
       {count_text({}), age_text({}), rate_text({}), share_text({}), bytes_text({})})
    EXPECT_EQ(unknown, "-");
}

}  // namespace
}  // namespace werk::app::top
