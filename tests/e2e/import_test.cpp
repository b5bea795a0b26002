// `werk import` as a person uses it: files, folders, whole trees, and Ctrl-C.
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <boost/json.hpp>
#include <chrono>
#include <fstream>

#include "tests/support/leftovers.hpp"
#include "tests/support/node_process.hpp"
#include "tests/support/temporary_folder.hpp"

namespace werk::test {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

class ImportCommand : public testing::Test {
 protected:
  void model(const fs::path& name, std::string_view own_name = "Werk Tiny",
             std::uint64_t seed = 1) const {
    fs::create_directories((folder_ / name).parent_path());
    TinyGgufOptions options;
    options.name = own_name;
    options.seed = seed;
    ASSERT_TRUE(write_tiny_gguf(folder_ / name, options));
  }
  void file(const fs::path& name, std::string_view bytes) const {
    fs::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
  }
  std::string path(const fs::path& name) const { return (folder_ / name).string(); }

  CommandRun werk(std::vector<std::string> words) const {
    return run_werk(words,
                    {"WERK_HOME=" + path("home"), "HOME=" + path("user"),
                     "XDG_CACHE_HOME=" + path("user/.cache"), "OLLAMA_MODELS=" + path("ollama")});
  }
  std::vector<std::string> ids() const {
    const json::value all = json::parse(werk({"list", "--json"}).out);
    std::vector<std::string> ids;
    for (const json::value& one : all.as_array()) ids.emplace_back(one.at("id").as_string());
    return ids;
  }
  std::vector<std::string> hidden_entries() const {
    return store_leftovers(folder_ / "home");
  }

  TemporaryFolder folder_;
};

TEST_F(ImportCommand, NamesAModelByItsFileAndQuantization) {
  model("Tiny-1B-Q8_0.gguf");
  const CommandRun run = werk({"import", path("Tiny-1B-Q8_0.gguf")});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_TRUE(run.out.starts_with("Tiny-1B:Q8_0 is installed (")) << run.out;
  EXPECT_EQ(run.err, "") << "no progress in a pipe";
  EXPECT_EQ(ids(), std::vector<std::string>{"Tiny-1B:Q8_0"});
}

TEST_F(ImportCommand, TakesAFolderThatHoldsOneModelWithItsProjector) {
  model("m/tiny.gguf");
  file("m/mmproj-F16.gguf", tiny_projector());
  const CommandRun run =
      werk({"import", path("m"), "--name", "t", "--alias", "u", "--alias", "v", "--link"});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_NE(run.out.find("linked, with projector"), std::string::npos) << run.out;
  EXPECT_EQ(werk({"inspect", "v"}).out, werk({"inspect", "t"}).out);
  model("m/other.gguf");
  const CommandRun two = werk({"import", path("m")});
  EXPECT_EQ(two.status, 1);
  EXPECT_NE(two.err.find("holds several models (other.gguf, tiny.gguf)"), std::string::npos)
      << two.err;
  EXPECT_NE(two.err.find("--all"), std::string::npos);
}

TEST_F(ImportCommand, TakesAllThatIsThereAndTellsEach) {
  model("m/Alpha-Q8_0.gguf", "A", 1);
  model("m/deep/beta.gguf", "B", 2);
  model("m/deep/Alpha-Q8_0.gguf", "C", 3);
  file("m/deep/mmproj-beta.gguf", tiny_projector());
  file("m/lost/mmproj-lost.gguf", tiny_projector());
  file("m/broken.gguf", "GGUF");
  const CommandRun run = werk({"import", "--all", path("m")});
  EXPECT_EQ(run.status, 1) << "one is broken";
  EXPECT_NE(run.err.find("broken.gguf: The file is cut"), std::string::npos) << run.err;
  EXPECT_NE(run.out.find("lost/mmproj-lost.gguf is left out"), std::string::npos) << run.out;
  EXPECT_NE(run.out.find("3 imported, 0 installed already, 1 left out, 1 failed"),
            std::string::npos)
      << run.out;
  EXPECT_EQ(ids(), (std::vector<std::string>{"Alpha:Q8_0", "beta:F32", "deep/Alpha:Q8_0"}));
  fs::remove(folder_ / "m/broken.gguf");
  const CommandRun again = werk({"import", "--all", path("m")});
  EXPECT_EQ(again.status, 0) << again.err;
  EXPECT_NE(again.out.find("0 imported, 3 installed already"), std::string::npos) << again.out;
  const CommandRun linked = werk({"import", "--all", "--link", path("m")});
  EXPECT_NE(linked.out.find("0 imported, 3 installed already"), std::string::npos) << linked.out;
}

TEST_F(ImportCommand, RefusesWhatMakesNoSense) {
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"import"},
                                             {"import", "--all"},
                                             {"import", "--all", path("."), "--name", "x"},
                                             {"import", "--scan", "--all"},
                                             {"import", "--scan", "--name", "x"},
                                             {"import", path("a"), "--json"},
                                             {"import", path("a"), path("b"), "--alias", "x"}}) {
    const CommandRun run = werk(words);
    EXPECT_EQ(run.status, 2);
    EXPECT_TRUE(run.err.starts_with("werk: ")) << run.err;
  }
  fs::create_directory(folder_ / "empty");
  for (const char* name : {"nothing", "empty"}) {
    const CommandRun run = werk({"import", path(name)});
    EXPECT_EQ(run.status, 1);
    EXPECT_NE(run.err.find(path(name)), std::string::npos) << run.err;
    EXPECT_EQ(werk({"import", "--all", path(name)}).status, 1);
  }
}

TEST_F(ImportCommand, ListsAndLinksWhatOtherToolsKeep) {
  const std::string digest(64, 'a');
  model("ollama/blobs/sha256-" + digest);
  file("ollama/manifests/registry.ollama.ai/library/tiny/latest",
       R"({"layers":[{"mediaType":"application/vnd.ollama.image.model","digest":"sha256:)" +
           digest + "\"}]}");
  file("ollama/manifests/registry.ollama.ai/library/cloud/latest", "{}");
  model("user/.cache/llama.cpp/lone-Q8_0.gguf", "Lone", 2);
  const CommandRun list = werk({"import", "--scan"});
  EXPECT_EQ(list.status, 0) << list.err;
  EXPECT_EQ(list.err, "");
  for (const char* text : {"WHERE", "tiny:latest", "lone:Q8_0", "no weights", "--scan --link"}) {
    EXPECT_NE(list.out.find(text), std::string::npos) << text << list.out;
  }
  const json::array before = json::parse(werk({"import", "--scan", "--json"}).out).as_array();
  ASSERT_EQ(before.size(), 3u);
  EXPECT_EQ(before[1].at("id").as_string(), "tiny:latest");
  EXPECT_FALSE(before[1].at("installed").as_bool());
  EXPECT_TRUE(before[0].at("id").is_null());

  const CommandRun one = werk({"import", "--scan", "--link", "tiny"});
  EXPECT_EQ(one.status, 0) << one.err;
  EXPECT_EQ(ids(), std::vector<std::string>{"tiny:latest"});
  const json::value manifest = json::parse(werk({"inspect", "tiny"}).out);
  const json::value& linked = manifest.at("files").as_array().at(0);
  EXPECT_EQ(linked.at("sha256").as_string(), digest) << "Ollama's word is taken";
  EXPECT_TRUE(linked.at("linked").as_bool());

  model("own.gguf", "Own", 3);
  EXPECT_EQ(werk({"import", path("own.gguf"), "--name", "lone:Q8_0"}).status, 0);
  fs::resize_file(folder_ / "ollama/blobs" / ("sha256-" + digest), 100);
  EXPECT_NE(werk({"list"}).err.find("'tiny:latest' cannot be loaded"), std::string::npos);
  model("ollama/blobs/sha256-" + digest);
  const CommandRun rest = werk({"import", "--scan", "--link"});
  EXPECT_EQ(rest.status, 0) << rest.err;
  EXPECT_NE(rest.out.find("1 imported, 1 installed already, 1 left out"), std::string::npos)
      << rest.out;
  EXPECT_EQ(ids(), (std::vector<std::string>{"llama.cpp/lone:Q8_0", "lone:Q8_0", "tiny:latest"}));
  const CommandRun wrong = werk({"import", "--scan", "tinny:latest"});
  EXPECT_EQ(wrong.status, 1);
  EXPECT_NE(wrong.err.find("did you mean tiny:latest?"), std::string::npos) << wrong.err;
}

// A model whose weights are a hole, so that reading it takes longer than a signal.
void write_long_model(const fs::path& path) {
  constexpr std::uint64_t kElements = std::uint64_t{1} << 32;
  GgufBuilder builder;
  builder.add_string("general.architecture", "llama");
  builder.add_tensor_entry("t", {kElements}, 0, 0);
  const std::string header = builder.header();
  std::ofstream(path, std::ios::binary) << header;
  fs::resize_file(path, header.size() + kElements * sizeof(float) + 4096);
}

TEST_F(ImportCommand, LeavesNothingWhenCtrlCStopsIt) {
  write_long_model(folder_ / "long.gguf");
  const std::string program = NodeProcess::program();
  const std::string file = path("long.gguf");
  std::vector<std::string> words = {program, "import", file, "--link"};
  std::vector<std::string> variables = {"WERK_HOME=" + path("home"), "HOME=" + path("user")};
  std::vector<char*> argv;
  std::vector<char*> environment;
  for (std::string& word : words) argv.push_back(word.data());
  for (std::string& variable : variables) environment.push_back(variable.data());
  argv.push_back(nullptr);
  environment.push_back(nullptr);
  pid_t pid = 0;
  ASSERT_EQ(::posix_spawn(&pid, program.c_str(), nullptr, nullptr, argv.data(), environment.data()),
            0);
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (hidden_entries().empty()) ASSERT_LT(std::chrono::steady_clock::now(), limit);
  ASSERT_EQ(::kill(pid, SIGINT), 0);
  int status = 0;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 130);
  EXPECT_TRUE(hidden_entries().empty());
  EXPECT_TRUE(ids().empty());
}

}  // namespace
}  // namespace werk::test
