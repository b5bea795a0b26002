#include "werk/engine/llama_server/finder.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/support/engine_control.hpp"
#include "tests/support/loop_fixture.hpp"
#include "tests/support/temporary_folder.hpp"
#include "werk/engine/llama_server/managed.hpp"
#include "werk/process/program.hpp"

namespace werk::engine::llama_server {
namespace {

class FinderTest : public test::LoopFixture {
 protected:
  FinderTest() {
    settings_.home = home_.path();
    settings_.environment = process::own_environment();
    settings_.search_path = (home_ / "bin").string();
    std::filesystem::create_directories(home_ / "bin");
  }

  // A program that notes each of its runs in `<path>.runs` and lists these devices.
  std::string make_program(const std::filesystem::path& path, std::string_view device) {
    std::filesystem::create_directories(path.parent_path());
    std::ofstream out(path);
    out << "#!/bin/sh\necho \"$1\" >> '" << path.string() << ".runs'\n";
    out << "if [ \"$1\" = --list-devices ]; then echo 'Available devices:'; echo '  " << device
        << "'; exit; fi\n";
    out << "exec '" << test::EngineControl::program() << "' \"$@\"\n";
    out.close();
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return path.string();
  }
  std::string runs_of(const std::string& program) {
    std::ifstream in(program + ".runs");
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
  }
  std::string make_managed(std::string_view device) {
    ManagedEngine engine;
    engine.version = "0.5.0";
    engine.processor = this_processor().fingerprint();
    engine.folder = managed_root(home_.path()) / managed_name(engine.version, engine.processor);
    const std::string program = make_program(engine.executable(), device);
    std::ofstream(engine.folder / "engine.json") << managed_to_json(engine);
    return program;
  }

  Finder& finder() {
    if (finder_ == nullptr) {
      finder_ = std::make_unique<Finder>(children_, clock_, offload_, settings_);
    }
    return *finder_;
  }
  static async::awaitable<void> keep(async::awaitable<Result<Executable>> found,
                                     Result<Executable>& out) {
    out = co_await std::move(found);
  }
  static async::awaitable<void> keep_choice(async::awaitable<Result<Finder::Choice>> found,
                                            Result<Finder::Choice>& out) {
    out = co_await std::move(found);
  }
  Result<Executable> find(Mode mode) {
    Result<Executable> found = fail(ErrorCode::internal, "not run");
    run(keep(finder().find(mode, std::stop_token()), found));
    return found;
  }
  Result<Finder::Choice> choose() {
    Result<Finder::Choice> found = fail(ErrorCode::internal, "not run");
    run(keep_choice(finder().choose(std::stop_token()), found));
    return found;
  }

  test::TemporaryFolder home_;
  async::SteadyClock clock_{executor()};
  async::Offload offload_{1};
  process::Children children_{executor(), clock_};
  FinderSettings settings_;
  std::unique_ptr<Finder> finder_;
};

TEST_F(FinderTest, WithoutAnyTheWaysToSupplyOneAreNamed) {
  const auto found = find(Mode::cpu);
  ASSERT_FALSE(found.has_value());
  EXPECT_EQ(found.error().code, ErrorCode::not_found);
  EXPECT_NE(found.error().message.find("werk engine install llama-server"), std::string::npos);
}

TEST_F(FinderTest, ANamedOneThatIsMissingIsAnErrorEvenIfOthersWouldDo) {
  make_program(home_ / "bin/llama-server", "(none)");
  settings_.named.by_mode[static_cast<std::size_t>(Mode::cpu)] = "/nowhere/llama-server";
  const auto found = find(Mode::cpu);
  ASSERT_FALSE(found.has_value());
  EXPECT_NE(found.error().message.find("WERK_LLAMA_SERVER_CPU"), std::string::npos);
}

TEST_F(FinderTest, ANamedOneThatDoesNotRunIsAnError) {
  const std::filesystem::path broken = home_ / "broken";
  std::ofstream(broken) << "#!/bin/sh\necho 'no libfoo.so' >&2\nexit 127\n";
  std::filesystem::permissions(broken, std::filesystem::perms::owner_all);
  settings_.named.any_mode = broken.string();
  const auto found = find(Mode::cpu);
  ASSERT_FALSE(found.has_value());
  EXPECT_NE(found.error().message.find("WERK_LLAMA_SERVER names"), std::string::npos);
  EXPECT_NE(found.error().message.find("no libfoo.so"), std::string::npos);
}

TEST_F(FinderTest, AProgramThatIsNoLlamaServerIsAnError) {
  settings_.named.any_mode = "/bin/true";
  const auto found = find(Mode::cpu);
  ASSERT_FALSE(found.has_value());
  EXPECT_NE(found.error().message.find("not a llama-server"), std::string::npos);
}

TEST_F(FinderTest, AProgramThatHangsIsGivenUp) {
  const std::filesystem::path hanging = home_ / "hanging";
  std::ofstream(hanging) << "#!/bin/sh\nexec sleep 1000\n";
  std::filesystem::permissions(hanging, std::filesystem::perms::owner_all);
  settings_.named.any_mode = hanging.string();
  settings_.limit = std::chrono::milliseconds(50);
  EXPECT_FALSE(find(Mode::cpu).has_value());
  EXPECT_EQ(children_.alive(), 0u);
}

TEST_F(FinderTest, TheModesOwnVariableWinsOverTheGeneralOne) {
  const std::string own = make_program(home_ / "own", "CUDA0: x");
  const std::string general = make_program(home_ / "general", "CUDA0: x");
  settings_.named.any_mode = general;
  settings_.named.by_mode[static_cast<std::size_t>(Mode::cuda)] = own;
  EXPECT_EQ(find(Mode::cuda)->path, own);
  EXPECT_EQ(find(Mode::cpu)->path, general);
  const auto vulkan = find(Mode::vulkan);
  ASSERT_FALSE(vulkan.has_value());
  EXPECT_NE(vulkan.error().message.find("Vulkan"), std::string::npos);
}

TEST_F(FinderTest, OfManagedAndPathTheOneWhoseDevicesSuitIsTaken) {
  const std::string managed = make_managed("(none)");
  const std::string in_path =
      make_program(home_ / "bin/llama-server", "CUDA0: x (1 MiB, 1 MiB free)");
  EXPECT_EQ(find(Mode::cpu)->path, managed);
  EXPECT_EQ(find(Mode::cuda)->path, in_path);
  const auto choice = choose();
  ASSERT_TRUE(choice.has_value());
  EXPECT_EQ(choice->mode, Mode::cuda);
  EXPECT_EQ(choice->executable.path, in_path);
  EXPECT_FALSE(find(Mode::rocm).has_value());
}

TEST_F(FinderTest, WithoutAnAcceleratorTheProcessorIsChosen) {
  const std::string in_path = make_program(home_ / "bin/llama-server", "(none)");
  const auto choice = choose();
  ASSERT_TRUE(choice.has_value());
  EXPECT_EQ(choice->mode, Mode::cpu);
  EXPECT_EQ(choice->executable.path, in_path);
}

TEST_F(FinderTest, AManagedOneForAnotherProcessorIsNeverUsed) {
  ManagedEngine engine;
  engine.version = "0.5.0";
  engine.processor = "z80-00000000";
  engine.folder = managed_root(home_.path()) / managed_name(engine.version, engine.processor);
  make_program(engine.executable(), "(none)");
  std::ofstream(engine.folder / "engine.json") << managed_to_json(engine);
  EXPECT_FALSE(find(Mode::cpu).has_value());
  EXPECT_EQ(list_managed(home_.path()).size(), 1u);
}

TEST_F(FinderTest, WhatWasLearntIsKeptUntilTheFileChanges) {
  const std::string program = make_program(home_ / "bin/llama-server", "(none)");
  ASSERT_TRUE(find(Mode::cpu).has_value());
  ASSERT_TRUE(find(Mode::cpu).has_value());
  EXPECT_EQ(runs_of(program), "--version\n--help\n--list-devices\n");
  finder_.reset();  // another life of the node
  ASSERT_TRUE(find(Mode::cpu).has_value());
  EXPECT_EQ(runs_of(program), "--version\n--help\n--list-devices\n--list-devices\n");
  make_program(home_ / "bin/llama-server", "(changed)");
  ASSERT_TRUE(find(Mode::cpu).has_value());
  EXPECT_EQ(
      runs_of(program),
      "--version\n--help\n--list-devices\n--list-devices\n--version\n--help\n--list-devices\n");
}

TEST_F(FinderTest, OneThatLoadsGnusOpenMpIsSeenToLoadLlvmsBeforeItIsStartedSo) {
  if (!has_shared_memory()) GTEST_SKIP() << "no shared memory to write to";
  // What a loader would tell, whatever this machine has.
  const std::string program = make_program(home_ / "bin/llama-server",
                                           "(none)'; printf '  7:\\tcalling init: "
                                           "/lib/libgomp.so.1\\n'; case \"$LD_PRELOAD\" in "
                                           "libomp.so.5*) printf '  7:\\tcalling init: "
                                           "/lib/libomp.so.5\\n' ;; esac; echo '");
  const auto found = find(Mode::cpu);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->openmp, OpenMp::llvm);
  EXPECT_EQ(found->preload, "libomp.so.5");
  EXPECT_TRUE(found->devices.empty());
  EXPECT_EQ(runs_of(program), "--version\n--help\n--list-devices\n--list-devices\n");
}

TEST_F(FinderTest, OneThatDoesNotRunWithLlvmsOpenMpKeepsItsOwn) {
  make_program(home_ / "bin/llama-server",
               "(none)'; printf '  7:\\tcalling init: /lib/libgomp.so.1\\n'; "
               "[ -z \"$LD_PRELOAD\" ] || exit 1; echo '");
  const auto found = find(Mode::cpu);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->openmp, OpenMp::gnu);
  EXPECT_EQ(found->preload, "");
}

TEST_F(FinderTest, OneThatBringsLlvmsOpenMpNeedsNoOther) {
  make_program(home_ / "bin/llama-server",
               "(none)'; printf '  7:\\tcalling init: /opt/libomp.so\\n'; echo '");
  const auto found = find(Mode::cpu);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->openmp, OpenMp::llvm);
  EXPECT_EQ(found->preload, "");
}

TEST_F(FinderTest, OneThatPrintsNothingTheFirstTimeIsAskedAgain) {
  const std::string program = make_program(home_ / "bin" / "quiet", "none");
  std::ofstream(program) << "#!/bin/sh\n[ -e '" << program << ".asked' ] || { touch '" << program
                         << ".asked'; exit 0; }\nexec '" << test::EngineControl::program()
                         << "' \"$@\"\n";
  settings_.named.any_mode = program;
  EXPECT_TRUE(find(Mode::cpu).has_value());
}

TEST_F(FinderTest, OneThatNeverPrintsItsVersionIsNoEngine) {
  const std::string program = make_program(home_ / "bin" / "mute", "none");
  std::ofstream(program) << "#!/bin/sh\nexit 0\n";
  settings_.named.any_mode = program;
  const auto found = find(Mode::cpu);
  ASSERT_FALSE(found.has_value());
  EXPECT_NE(found.error().message.find("--version names none"), std::string::npos);
}

}  // namespace
}  // namespace werk::engine::llama_server
