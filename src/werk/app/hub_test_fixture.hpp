// For tests of pulling: a home, a model of the hub's in it or not, and surroundings whose clock,
// waits, disk and person are the test's. One test owns it.
#pragma once

#include "werk/app/hub_pull.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "tests/support/leftovers.hpp"
#include "tests/support/gguf_builder.hpp"
#include "tests/support/scripted_hub.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/tiny_gguf.hpp"
#include "werk/base/digest.hpp"
#include "werk/model/store.hpp"

namespace werk::app {
namespace fs = std::filesystem;
using namespace std::chrono_literals;
using model::GoOn;
using test::HubEvent;
using test::ScriptedHub;

constexpr std::string_view kFile = "Tiny-Q4_K_M.gguf";
constexpr std::string_view kId = "org/Tiny-GGUF:Q4_K_M";

// The least that is a model, of some 64 KiB.
inline std::string small_model(std::string_view name) {
  test::GgufBuilder file;
  file.add_string("general.architecture", "llama");
  file.add_string("general.name", name);
  file.add_u32("llama.context_length", 512);
  file.add_tensor("weights", {16 * 1024},
                  [](std::uint64_t index) { return static_cast<float>(index); });
  return file.bytes();
}

// Ends the process, or fails with a reason, before one of the steps that write.
class FailsAt final : public model::WriteHook {
 public:
  FailsAt(int step, int reason) : left_(step), reason_(reason) {}
  int before(model::WriteStep) override {
    if (left_-- != 0) return 0;
    has_failed = true;
    if (reason_ == 0) ::_exit(42);
    return reason_;
  }
  bool has_failed = false;

 private:
  int left_;
  int reason_;
};

class HubPullTest : public testing::Test {
 protected:
  HubPullTest() {
    // Nothing of this may leave the machine, whatever the environment says.
    ::setenv("no_proxy", "*", 1);
    content_ = small_model("tiny");
    around_.go_on = [this] { return stop_ ? GoOn::stop : GoOn::yes; };
    around_.wait = [this](std::chrono::milliseconds duration) {
      waits_.push_back(duration);
      return stop_ ? GoOn::stop : GoOn::yes;
    };
    around_.now = [] { return std::chrono::steady_clock::time_point(); };
    around_.free_bytes = [this](const fs::path&) { return free_bytes_; };
    around_.tell = [this](std::string_view text) { said_ += std::string(text) + "\n"; };
    patience_.progress_bytes = 1;
    pull_.home = folder_ / "home";
    pull_.name = {std::string(test::kHubRepository), ""};
  }

  void offer(ScriptedHub& hub) {
    hub.add_file(std::string(kFile), content_);
    hub.add_file("README.md", "about");
    pull_.hub.endpoint = hub.address();
  }
  Result<std::string> pull() {
    const Say say = [this](Note note, std::string_view text) {
      if (note == Note::line) said_ += std::string(text) + "\n";
    };
    return pull_from_hub(pull_, around_, say, patience_);
  }
  std::string error() {
    const auto pulled = pull();
    EXPECT_FALSE(pulled) << *pulled;
    return pulled ? std::string() : pulled.error().message;
  }
  // Runs it in a process that a hook may end; whether that process ended so.
  bool dies_pulling() {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(pull() ? 0 : 1);
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status));
    return WEXITSTATUS(status) == 42;
  }

  model::Store store() const { return model::Store(pull_.home); }
  std::string installed_bytes(std::string_view id = kId) const {
    const auto model = store().find(id);
    if (!model) return model.error().message;
    std::ostringstream text;
    text << std::ifstream(model->weights_path(), std::ios::binary).rdbuf();
    return text.str();
  }
  // What lies in downloads, locks excepted.
  std::vector<fs::path> downloads() const {
    std::vector<fs::path> found;
    std::error_code ignored;
    for (const auto& entry : fs::recursive_directory_iterator(pull_.home / "downloads", ignored)) {
      if (entry.is_regular_file() && entry.path().extension() != ".lock") {
        found.push_back(entry.path());
      }
    }
    return found;
  }
  std::size_t litter() const {
    std::size_t count = 0;
    std::error_code ignored;
    for (fs::recursive_directory_iterator it(pull_.home / "downloads", ignored), end; it != end;
         it.increment(ignored)) {
      ++count;
    }
    return count + test::store_leftovers(pull_.home).size();
  }
  void reset() {
    fs::remove_all(pull_.home);
    waits_.clear();
    said_.clear();
  }
  std::string blob() const { return test::hub_blob_target(sha256_hex(content_)); }
  static HubEvent cut(std::size_t bytes) {
    HubEvent event;
    event.cut_after = bytes;
    return event;
  }
  static HubEvent answer(int status, std::vector<std::string> headers = {}) {
    HubEvent event;
    event.status = status;
    event.headers = std::move(headers);
    return event;
  }

  test::TemporaryFolder folder_;
  std::string content_;
  Surroundings around_;
  Patience patience_;
  HubPull pull_;
  bool stop_ = false;
  std::optional<std::uint64_t> free_bytes_;
  std::vector<std::chrono::milliseconds> waits_;
  std::string said_;
};

}  // namespace werk::app
