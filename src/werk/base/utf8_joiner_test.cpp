#include "werk/base/utf8_joiner.hpp"

#include <gtest/gtest.h>

namespace werk {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

std::string join(std::initializer_list<std::string_view> fragments) {
  Utf8Joiner joiner;
  std::string out;
  for (const std::string_view fragment : fragments) joiner.take(fragment, out);
  joiner.finish(out);
  return out;
}

TEST(Utf8Joiner, JoinsWhatWasCutAnywhere) {
  const std::string text = "aé漢😀z";
  for (std::size_t a = 0; a <= text.size(); ++a) {
    for (std::size_t b = a; b <= text.size(); ++b) {
      const std::string_view whole = text;
      EXPECT_EQ(join({whole.substr(0, a), whole.substr(a, b - a), whole.substr(b)}), text);
    }
  }
}

TEST(Utf8Joiner, HoldsBackOnlyWhatMayStillBecomeOneCharacter) {
  Utf8Joiner joiner;
  std::string out;
  joiner.take("a\xF0\x9F", out);
  EXPECT_EQ(out, "a");
  joiner.take("b", out);
  EXPECT_EQ(out, std::string("a").append(kReplacement).append(kReplacement).append("b"));
}

TEST(Utf8Joiner, ReplacesWhatBelongsToNoCharacter) {
  const std::string r(kReplacement);
  EXPECT_EQ(join({"\x80"}), r);
  EXPECT_EQ(join({"\xC0\xAF"}), r + r);
  EXPECT_EQ(join({"\xED\xA0", "\x80"}), r + r + r) << "a surrogate";
  EXPECT_EQ(join({"\xF4\x90"}), r + r) << "beyond the last character";
  EXPECT_EQ(join({"\xE0\x80"}), r + r) << "longer than it need be";
  EXPECT_EQ(join({"\xE6\xBC"}), r) << "unfinished";
}

}  // namespace
}  // namespace werk
