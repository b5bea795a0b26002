// What is left of an import or a removal that fails, or whose process dies, at any of its steps.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>

#include "tests/support/leftovers.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/tiny_gguf.hpp"
#include "werk/model/store.hpp"

namespace werk::model {
namespace {

namespace fs = std::filesystem;

constexpr int kDied = 42;
constexpr int kStepsMax = 100;

// Lets `steps` steps happen and then fails with `reason`, or ends the process where that is 0.
class FailsAfter final : public WriteHook {
 public:
  FailsAfter(int steps, int reason) : left_(steps), reason_(reason) {}

  int before(WriteStep step) override {
    if (left_-- > 0) return 0;
    if (reason_ == 0) ::_exit(kDied);
    failed_at = step;
    return left_ == -1 ? reason_ : 0;
  }

  std::optional<WriteStep> failed_at;

 private:
  int left_;
  int reason_;
};

class StoreFaults : public testing::Test {
 protected:
  // A model of several files.
  void SetUp() override {
    ASSERT_TRUE(test::write_tiny_gguf(folder_ / "tiny.gguf"));
    std::ofstream(folder_ / "mmproj-tiny.gguf", std::ios::binary) << test::tiny_projector();
  }

  Store store(WriteHook* hook = nullptr) const {
    StoreOptions options;
    options.hook = hook;
    return Store(folder_ / "home", options);
  }

  ImportRequest request(ImportMode mode) const {
    ImportRequest request;
    request.path = folder_ / "tiny.gguf";
    request.id = "a";
    request.mode = mode;
    return request;
  }

  // Hidden folders: imports under way and models being deleted.
  std::vector<std::string> leftovers() const {
    return test::store_leftovers(folder_ / "home");
  }

  void expect_whole_or_absent(int step) const {
    const auto listing = store().list();
    ASSERT_TRUE(listing);
    EXPECT_TRUE(listing->broken.empty()) << "after step " << step;
    for (const InstalledModel& model : listing->models) EXPECT_TRUE(verify(model)) << step;
  }

  // Runs in a child process that the hook may end; whether it ended.
  template <class Action>
  bool dies_in(Action action) const {
    const pid_t child = ::fork();
    if (child == 0) {
      action();
      ::_exit(0);
    }
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status));
    return WEXITSTATUS(status) == kDied;
  }

  void expect_kills_leave_whole_or_none(ImportMode mode) const {
    bool swept_something = false;
    for (int steps = 0;; ++steps) {
      ASSERT_LT(steps, kStepsMax);
      const bool died = dies_in([&] {
        FailsAfter hook(steps, 0);
        (void)store(&hook).import_file(request(mode));
      });
      expect_whole_or_absent(steps);
      swept_something = swept_something || !leftovers().empty();
      const bool is_there = store().find("a").has_value();
      EXPECT_TRUE(died || is_there);
      const auto again = store().import_file(request(mode));
      EXPECT_EQ(again.has_value(), !is_there) << "step " << steps;
      EXPECT_TRUE(leftovers().empty()) << "step " << steps;
      ASSERT_TRUE(store().find("a")->projector_path());
      ASSERT_TRUE(store().remove("a"));
      if (!died) break;
      if (steps % 2 == 0) fs::remove_all(folder_ / "home");
    }
    EXPECT_TRUE(swept_something) << "no process died with an import under way";
  }

  test::TemporaryFolder folder_;
};

TEST_F(StoreFaults, AFailedImportLeavesNothingAtAnyStep) {
  for (const ImportMode mode : {ImportMode::copy, ImportMode::link}) {
    int steps = 0;
    for (;; ++steps) {
      ASSERT_LT(steps, kStepsMax);
      FailsAfter hook(steps, ENOSPC);
      const auto result = store(&hook).import_file(request(mode));
      if (!hook.failed_at) {
        EXPECT_TRUE(result);
        break;
      }
      ASSERT_FALSE(result) << "step " << steps;
      EXPECT_EQ(result.error().code, ErrorCode::io);
      EXPECT_NE(result.error().message.find("No space left on device"), std::string::npos);
      EXPECT_NE(result.error().message.find((folder_ / "home").string()), std::string::npos);
      EXPECT_TRUE(store().list()->models.empty()) << "step " << steps;
      EXPECT_TRUE(leftovers().empty()) << "step " << steps;
      expect_whole_or_absent(steps);
    }
    EXPECT_GT(steps, 10) << "the hook was not asked";
    ASSERT_TRUE(store().remove("a"));
    fs::remove_all(folder_ / "home");
  }
}

TEST_F(StoreFaults, AMoveThatFailsOrDiesAtAnyStepLeavesTheFileOrTheModel) {
  const auto whole = [this] { return fs::exists(folder_ / "tiny.gguf") || store().find("a"); };
  for (const int reason : {ENOSPC, 0}) {
    int steps = 0;
    for (bool broken = true; broken; ++steps) {
      ASSERT_LT(steps, kStepsMax);
      ASSERT_TRUE(test::write_tiny_gguf(folder_ / "tiny.gguf"));
      broken = dies_in([&] {
        FailsAfter hook(steps, reason);
        if (!store(&hook).import_file(request(ImportMode::move))) ::_exit(kDied);
      });
      EXPECT_TRUE(whole()) << "step " << steps;
      if (reason != 0) {
        EXPECT_TRUE(leftovers().empty()) << "step " << steps;
      }
      expect_whole_or_absent(steps);
      if (store().find("a")) {
        ASSERT_TRUE(store().remove("a"));
      }
    }
    EXPECT_GT(steps, 10) << "the hook was not asked";
    EXPECT_FALSE(fs::exists(folder_ / "tiny.gguf")) << "the last one moved it";
  }
}

TEST_F(StoreFaults, AnImportKilledAtAnyStepLeavesAWholeModelOrNone) {
  expect_kills_leave_whole_or_none(ImportMode::copy);
}

TEST_F(StoreFaults, ALinkKilledAtAnyStepLeavesAWholeModelOrNoneAndTheFilesAsTheyWere) {
  expect_kills_leave_whole_or_none(ImportMode::link);
  EXPECT_EQ(fs::file_size(folder_ / "tiny.gguf"), test::tiny_gguf().size());
  EXPECT_TRUE(fs::exists(folder_ / "mmproj-tiny.gguf"));
}

TEST_F(StoreFaults, ASweepDeletesWhatDeadProcessesLeftAndNothingElse) {
  store().sweep();
  EXPECT_FALSE(fs::exists(folder_ / "home")) << "there is nothing to sweep";
  constexpr int kInTheMiddle = 12;
  ASSERT_TRUE(dies_in([&] {
    FailsAfter hook(kInTheMiddle, 0);
    (void)store(&hook).import_file(request(ImportMode::copy));
  }));
  ASSERT_FALSE(leftovers().empty());
  store().sweep();
  EXPECT_TRUE(leftovers().empty());
  const auto running = store().import_file(request(ImportMode::copy), [&](auto&) {
    store().sweep();
    return GoOn::yes;
  });
  EXPECT_TRUE(running) << "an import under way is nobody's leftover";
}

TEST_F(StoreFaults, AFailedRemovalLeavesTheModelOrNothingOfIt) {
  int failures = 0;
  for (int steps = 0;; ++steps) {
    ASSERT_LT(steps, kStepsMax);
    if (!store().find("a")) {
      ASSERT_TRUE(store().import_file(request(ImportMode::copy)));
    }
    FailsAfter hook(steps, EIO);
    const Status removed = store(&hook).remove("a");
    expect_whole_or_absent(steps);
    if (!hook.failed_at) {
      EXPECT_TRUE(removed);
      break;
    }
    ++failures;
    EXPECT_EQ(removed.error().code, ErrorCode::io);
  }
  EXPECT_GE(failures, 4);
  EXPECT_TRUE(leftovers().empty());
}

TEST_F(StoreFaults, ARemovalKilledAtAnyStepLeavesTheModelOrNothingOfIt) {
  bool swept_something = false;
  for (int steps = 0;; ++steps) {
    ASSERT_LT(steps, kStepsMax);
    if (!store().find("a")) {
      ASSERT_TRUE(store().import_file(request(ImportMode::copy)));
    }
    const bool died = dies_in([&] {
      FailsAfter hook(steps, 0);
      (void)store(&hook).remove("a");
    });
    expect_whole_or_absent(steps);
    swept_something = swept_something || !leftovers().empty();
    if (!died) break;
  }
  EXPECT_TRUE(swept_something);
}

TEST_F(StoreFaults, OneOfTwoProcessesImportsAnId) {
  for (int round = 0; round < 5; ++round) {
    std::vector<pid_t> children;
    for (int i = 0; i < 2; ++i) {
      const pid_t child = ::fork();
      if (child == 0) {
        const auto result = store().import_file(request(ImportMode::copy));
        ::_exit(result ? 0 : result.error().code == ErrorCode::conflict ? 1 : 2);
      }
      children.push_back(child);
    }
    int conflicts = 0;
    for (const pid_t child : children) {
      int status = 0;
      ASSERT_EQ(::waitpid(child, &status, 0), child);
      ASSERT_TRUE(WIFEXITED(status));
      ASSERT_LE(WEXITSTATUS(status), 1);
      conflicts += WEXITSTATUS(status);
    }
    EXPECT_EQ(conflicts, 1);
    EXPECT_TRUE(leftovers().empty());
    ASSERT_TRUE(store().remove("a"));
  }
}

TEST_F(StoreFaults, AHomeThatCannotBeWrittenIsNamed) {
  std::ofstream(folder_ / "home") << "a file stands where the home should be";
  const auto result = store().import_file(request(ImportMode::copy));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::io);
  EXPECT_NE(result.error().message.find((folder_ / "home").string()), std::string::npos);
  EXPECT_NE(result.error().message.find("Not a directory"), std::string::npos)
      << result.error().message;
  EXPECT_EQ(store().list().error().code, ErrorCode::io);
}

TEST_F(StoreFaults, ARefusedWriteSaysHowToNameAnotherHome) {
  FailsAfter hook(0, EACCES);
  const auto result = store(&hook).import_file(request(ImportMode::copy));
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().message.find("Permission denied. Set WERK_HOME"), std::string::npos)
      << result.error().message;
}

}  // namespace
}  // namespace werk::model
