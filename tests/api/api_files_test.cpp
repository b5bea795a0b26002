// What the .exchange files say together.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "tests/api/exchange_file.hpp"
#include "werk/gateway/errors.hpp"

namespace werk::test {
namespace {

// What no request can bring about: nobody reads "cancelled", the others belong to commands or mean
// a broken machine.
constexpr std::array kNotFromRequests = {ErrorCode::cancelled, ErrorCode::not_found,
                                         ErrorCode::conflict, ErrorCode::io, ErrorCode::internal};

TEST(ApiFiles, EveryCodeThatARequestCanCauseIsExpectedByOne) {
  const std::filesystem::path folder = WERK_API_FILES;
  std::string all;
  for (const std::string& file : exchange_files(folder)) all += content_of(folder / file);
  for (int i = 0; i <= static_cast<int>(ErrorCode::internal); ++i) {
    const auto code = static_cast<ErrorCode>(i);
    if (std::ranges::find(kNotFromRequests, code) != kNotFromRequests.end()) continue;
    const std::string word = fmt::format(R"("code":"{}")", gateway::row_of(code).openai_code);
    EXPECT_NE(all.find(word), std::string::npos) << "no file expects " << word;
  }
}

}  // namespace
}  // namespace werk::test
