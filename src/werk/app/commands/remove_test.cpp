#include <gtest/gtest.h>

#include "werk/app/commands/remove.hpp"

namespace werk::app {
namespace {

const std::string kIdentity = "0123456789ab" + std::string(52, 'c');

std::string page(std::string_view key, std::string_view state, int busy, int waiting) {
  return R"({"runtimes":[{"key":"x/ffffffffffff/1","state":"ready"},{"key":")" + std::string(key) +
         R"(","state":")" + std::string(state) + R"(","slots":{"busy":)" + std::to_string(busy) +
         R"(},"waiting":)" + std::to_string(waiting) + "}]}";
}

TEST(HeldModel, IsOneWithARuntimeOfItsIdentity) {
  const auto held = [](const std::string& text) {
    const auto result = held_as(text, kIdentity);
    return result ? result->value_or("free") : result.error().message;
  };
  EXPECT_EQ(held(page("llama-cpu/0123456789ab/89abcdef", "ready", 0, 0)), "ready, 0 calls");
  EXPECT_EQ(held(page("llama-cpu/0123456789ab/89abcdef", "starting", 0, 1)), "starting, 1 call");
  EXPECT_EQ(held(page("llama-cpu/0123456789ab/89abcdef", "closing", 1, 1)), "closing, 2 calls");
  EXPECT_EQ(held(page("llama-cpu/0123456789ab/89abcdef", "stopping", 0, 0)), "free");
  EXPECT_EQ(held(page("llama-cpu/0123456789ac/89abcdef", "ready", 1, 0)), "free");
  for (const char* odd : {"", "llama-cpu", "llama-cpu/", "//", "a//b"}) {
    EXPECT_EQ(held(page(odd, "ready", 1, 0)), "free") << odd;
  }
  EXPECT_EQ(held(R"({"runtimes":[]})"), "free");
  EXPECT_EQ(held(R"({"runtimes":[1,{"key":2},{"slots":[]}]})"), "free");
}

TEST(HeldModel, IsUnknownFromAPageThatIsNotUnderstood) {
  for (const char* text : {"", "[]", "{}", R"({"runtimes":{}})", "<html>"}) {
    EXPECT_FALSE(held_as(text, kIdentity)) << text;
  }
}

}  // namespace
}  // namespace werk::app
