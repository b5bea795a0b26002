#include "werk/process/cpu_quota.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/temporary_folder.hpp"

namespace werk::process {
namespace {

class CpuQuotaTest : public ::testing::Test {
 protected:
  void limit(const std::string& group, std::string_view text) {
    std::filesystem::create_directories(mount_ / group);
    std::ofstream(mount_ / group / "cpu.max") << text << '\n';
  }
  std::optional<std::size_t> cores(std::string_view own) const {
    return quota_cores(mount_.path(), own);
  }

  test::TemporaryFolder mount_;
};

TEST_F(CpuQuotaTest, TheLeastLimitOfAGroupAndThoseAroundItCounts) {
  limit("system.slice", "400000 100000");
  limit("system.slice/werk.service", "max 100000");
  EXPECT_EQ(cores("0::/system.slice/werk.service\n"), 4u);
  limit("system.slice/werk.service", "250000 100000");
  EXPECT_EQ(cores("0::/system.slice/werk.service\n"), 2u);
  EXPECT_EQ(cores("4:memory:/x\n0::/system.slice\n"), 4u);
}

TEST_F(CpuQuotaTest, AContainerSeesItsLimitAtTheTop) {
  limit("", "50000 100000");
  EXPECT_EQ(cores("0::/\n"), 1u) << "half a core is no reason for none";
}

TEST_F(CpuQuotaTest, WithoutALimitOrWithTextThatIsNoneThereIsNone) {
  EXPECT_EQ(cores("0::/\n"), std::nullopt);
  EXPECT_EQ(cores("1:cpu:/\n"), std::nullopt);
  EXPECT_EQ(cores(""), std::nullopt);
  for (const auto* text : {"max 100000", "", "x y", "100000", "100000 0"}) {
    limit("a", text);
    EXPECT_EQ(cores("0::/a\n"), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace werk::process
