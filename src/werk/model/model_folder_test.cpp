#include "werk/model/model_folder.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/temporary_folder.hpp"
#include "tests/support/tiny_gguf.hpp"
#include "werk/model/import_plan.hpp"

namespace werk::model {
namespace {

namespace fs = std::filesystem;

std::string split_file(std::uint16_t number, std::uint16_t count) {
  test::GgufBuilder file;
  file.add_string("general.architecture", "llama");
  file.add_u16("split.no", static_cast<std::uint16_t>(number - 1));
  file.add_u16("split.count", count);
  file.add_u32("llama.embedding_length", 64);
  file.add_tensor("t" + std::to_string(number), {32}, [](std::uint64_t) { return 1.0F; });
  return file.bytes();
}

std::string adapter() {
  test::GgufBuilder file;
  file.add_string("general.architecture", "llama");
  file.add_string("general.type", "adapter");
  file.add_tensor("t", {32}, [](std::uint64_t) { return 1.0F; });
  return file.bytes();
}

class ModelFolder : public testing::Test {
 protected:
  void write(const fs::path& name, std::string_view bytes) const {
    fs::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
  }

  std::vector<std::string> models() const {
    const auto found = find_models(folder_.path());
    EXPECT_TRUE(found);
    std::vector<std::string> names;
    for (const ModelInFolder& model : found->models) {
      names.push_back(model.path.lexically_relative(folder_.path()).string());
    }
    return names;
  }

  std::string projector_of(const fs::path& name) const {
    const auto plan = plan_import(folder_ / name, ProjectorRule::beside, std::nullopt);
    EXPECT_TRUE(plan) << plan.error().message;
    if (!plan || !plan->projector) return {};
    return plan->files.back().path.lexically_relative(folder_.path()).string();
  }

  test::TemporaryFolder folder_;
};

TEST_F(ModelFolder, HoldsEachSplitSetOnceAndProjectorsApart) {
  write("a.gguf", test::tiny_gguf());
  write("deep/er/b.GGUF", test::tiny_gguf());
  write("deep/mmproj-b.gguf", test::tiny_projector());
  write("deep/vision.gguf", test::tiny_projector());
  for (std::uint16_t i = 1; i <= 3; ++i) {
    write("s/m-0000" + std::to_string(i) + "-of-00003.gguf", split_file(i, 3));
  }
  write("s/half-00002-of-00002.gguf", split_file(2, 2));
  write("readme.txt", "x");
  write(".hidden/c.gguf", test::tiny_gguf());
  write(".c.gguf", test::tiny_gguf());
  EXPECT_EQ(models(),
            (std::vector<std::string>{"a.gguf", "deep/er/b.GGUF", "s/half-00002-of-00002.gguf",
                                      "s/m-00001-of-00003.gguf"}));
  const auto found = find_models(folder_.path());
  EXPECT_EQ(found->projectors,
            (std::vector<fs::path>{folder_ / "deep/mmproj-b.gguf", folder_ / "deep/vision.gguf"}));
  EXPECT_TRUE(found->others.empty());
}

TEST_F(ModelFolder, TellsWhatIsNoModelAndWhy) {
  write("lora.gguf", adapter());
  write("cut.gguf", test::tiny_gguf().substr(0, 100'000));
  write("page.gguf", "<!doctype html>");
  fs::create_symlink("nothing", folder_ / "dangling.gguf");
  const auto found = find_models(folder_.path());
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->models.empty());
  ASSERT_EQ(found->others.size(), 4u);
  EXPECT_EQ(found->others[0].error.code, ErrorCode::model_unusable);
  EXPECT_NE(found->others[0].error.message.find("cut.gguf: The file is cut"), std::string::npos);
  EXPECT_EQ(found->others[1].error.code, ErrorCode::not_found);
  EXPECT_EQ(found->others[2].error.code, ErrorCode::unsupported);
  EXPECT_NE(found->others[2].error.message.find("LoRA"), std::string::npos);
  EXPECT_NE(found->others[3].error.message.find("web page"), std::string::npos);
}

TEST_F(ModelFolder, FollowsLinksToFilesAndNoneToFolders) {
  write("real/a.gguf", test::tiny_gguf());
  fs::create_directory_symlink(folder_.path(), folder_ / "real/loop");
  fs::create_symlink("real/a.gguf", folder_ / "link.gguf");
  EXPECT_EQ(models(), (std::vector<std::string>{"link.gguf", "real/a.gguf"}));
}

TEST_F(ModelFolder, ThatIsNoneIsAnError) {
  EXPECT_EQ(find_models(folder_ / "nothing").error().code, ErrorCode::not_found);
  write("file", "x");
  EXPECT_EQ(find_models(folder_ / "file").error().code, ErrorCode::io);
}

TEST_F(ModelFolder, GivesEachModelTheProjectorThatIsNamedAfterIt) {
  for (const char* name : {"Alpha-4B-Q4_0.gguf", "beta_4b.gguf", "gamma.gguf"}) {
    write(name, test::tiny_gguf());
  }
  write("mmproj-alpha-4b-f16.gguf", test::tiny_projector());
  write("beta-4B-mmproj-F16.gguf", test::tiny_projector());
  EXPECT_EQ(projector_of("Alpha-4B-Q4_0.gguf"), "mmproj-alpha-4b-f16.gguf");
  EXPECT_EQ(projector_of("beta_4b.gguf"), "beta-4B-mmproj-F16.gguf");
  EXPECT_EQ(projector_of("gamma.gguf"), "") << "each belongs to another";
  write("mmproj-model-f16.gguf", test::tiny_projector());
  EXPECT_EQ(projector_of("gamma.gguf"), "mmproj-model-f16.gguf");
  EXPECT_EQ(projector_of("beta_4b.gguf"), "beta-4B-mmproj-F16.gguf");
}

TEST_F(ModelFolder, OfAQuantizationHasItsProjectorOneAbove) {
  write("repo/Q4_K_M/big-Q4_K_M.gguf", test::tiny_gguf());
  write("repo/other/big.gguf", test::tiny_gguf());
  write("repo/mmproj-F16.gguf", test::tiny_projector());
  EXPECT_EQ(projector_of("repo/Q4_K_M/big-Q4_K_M.gguf"), "repo/mmproj-F16.gguf");
  EXPECT_EQ(projector_of("repo/other/big.gguf"), "");
}

}  // namespace
}  // namespace werk::model
