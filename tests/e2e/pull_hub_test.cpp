// `werk pull hf:ORG/REPO` as a person runs it, against a hub on loopback.
#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <stdexcept>

#include "tests/support/node_process.hpp"
#include "tests/support/scripted_hub.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/tiny_gguf.hpp"
#include "werk/base/digest.hpp"
#include "werk/model/store.hpp"

namespace werk::test {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFile = "Tiny-Q4_K_M.gguf";
const std::string kName = "hf:" + std::string(kHubRepository);
const std::string kId = std::string(kHubRepository) + ":Q4_K_M";

class PullHub : public testing::Test {
 protected:
  PullHub() : content_(tiny_gguf()) {}

  void offer(ScriptedHub& hub) {
    hub.add_file(std::string(kFile), content_);
    environment_ = {"HF_ENDPOINT=" + hub.address(), "HF_HOME=" + (folder_ / "hf").string()};
  }
  // With the body held in its middle.
  void offer_and_hold(ScriptedHub& hub) {
    offer(hub);
    HubEvent event;
    event.hold_after =
        hub.answer_bytes(hub_blob_target(sha256_hex(content_)), true) - content_.size() / 2;
    hub.next("/blob/", event);
  }
  NodeProcess::Settings command(const std::vector<std::string>& more = {}) {
    NodeProcess::Settings settings;
    settings.home = home();
    settings.command = {"pull", kName};
    settings.arguments = more;
    settings.environment = environment_;
    return settings;
  }
  CommandRun pull(std::vector<std::string> words) {
    words.insert(words.begin(), "pull");
    std::vector<std::string> environment = environment_;
    environment.push_back("WERK_HOME=" + home().string());
    return run_werk(words, environment);
  }
  fs::path home() const { return folder_ / "home"; }
  bool is_installed() const { return model::Store(home()).find(kId).has_value(); }

  // Until some of the file has reached the disk.
  void wait_for_part() const {
    constexpr int kLooksMax = 6000;
    for (int looks = 0; looks < kLooksMax; ++looks) {
      std::error_code error;
      for (fs::recursive_directory_iterator it(home() / "downloads", error), end; it != end;
           it.increment(error)) {
        if (it->path().extension() == ".part" && fs::file_size(it->path(), error) > 0) return;
      }
      ::poll(nullptr, 0, 5);
    }
    throw std::runtime_error("nothing came");
  }
  void expect_goes_on(ScriptedHub& hub) {
    const CommandRun again = pull({kName});
    EXPECT_EQ(again.status, 0) << again.err;
    EXPECT_TRUE(is_installed());
    EXPECT_NE(hub.requests_for("/blob/").back().head.find("Range: bytes="), std::string::npos);
    EXPECT_TRUE(fs::is_empty(home() / "downloads"));
  }

  TemporaryFolder folder_;
  std::string content_;
  std::vector<std::string> environment_;
};

TEST_F(PullHub, BringsAModelOverTlsWithTheTokenOfTheHubsOwnTool) {
  ScriptedHub hub(HubWire::tls);
  offer(hub);
  hub.require_token("hf_secret");
  fs::create_directories(folder_ / "hf");
  std::ofstream(folder_ / "hf/token") << "hf_secret\n";
  environment_.push_back("SSL_CERT_FILE=" + hub.certificate().string());
  const CommandRun run = pull({kName, "--name", "mine", "--alias", "tiny"});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_NE(run.out.find("mine is installed"), std::string::npos) << run.out;
  EXPECT_EQ(run.err.find('\r'), std::string::npos) << "progress is for terminals";
  EXPECT_TRUE(model::Store(home()).find("tiny"));
  for (const HubRequest& request : hub.requests()) {
    EXPECT_EQ(request.has_token(), !request.at_content_host);
  }
}

TEST_F(PullHub, KilledInTheMiddleGoesOnWhereItWas) {
  ScriptedHub hub;
  offer_and_hold(hub);
  {
    NodeProcess first(command());
    hub.wait_for_hold();
    wait_for_part();
    first.signal(SIGKILL);
    EXPECT_EQ(first.wait_exit(), 128 + SIGKILL);
  }
  EXPECT_FALSE(is_installed());
  expect_goes_on(hub);
}

TEST_F(PullHub, EndedByASignalSaysWhatIsKeptAndGoesOnWhereItWas) {
  for (const int number : {SIGINT, SIGTERM}) {
    ScriptedHub hub;
    offer_and_hold(hub);
    NodeProcess first(command());
    hub.wait_for_hold();
    wait_for_part();
    first.signal(number);
    EXPECT_EQ(first.wait_exit(), 1);
    EXPECT_NE(first.log().find("the same command goes on from there"), std::string::npos)
        << first.log();
    EXPECT_FALSE(is_installed());
    expect_goes_on(hub);
    fs::remove_all(home());
  }
}

TEST_F(PullHub, TwoAtOnceFetchItOnce) {
  ScriptedHub hub;
  offer_and_hold(hub);
  NodeProcess first(command());
  hub.wait_for_hold();
  NodeProcess second(command());
  second.wait_for_line("another werk fetches the same; waiting");
  hub.release();
  EXPECT_EQ(first.wait_exit(), 0) << first.log();
  EXPECT_EQ(second.wait_exit(), 0) << second.log();
  EXPECT_EQ(hub.requests_for("/blob/").size(), 1u);
  EXPECT_TRUE(is_installed());
  EXPECT_TRUE(fs::is_empty(home() / "downloads"));
}

TEST_F(PullHub, OneThatWaitsForADeadOneTakesOver) {
  ScriptedHub hub;
  offer_and_hold(hub);
  NodeProcess first(command());
  hub.wait_for_hold();
  wait_for_part();
  NodeProcess second(command());
  second.wait_for_line("another werk fetches the same; waiting");
  first.signal(SIGKILL);
  EXPECT_EQ(second.wait_exit(), 0) << second.log();
  EXPECT_TRUE(is_installed());
}

TEST_F(PullHub, GoesThroughTheProxyThatTheEnvironmentNames) {
  ScriptedHub hub;
  ScriptedHub proxy;
  offer(hub);
  environment_.push_back("http_proxy=" + proxy.address());
  EXPECT_EQ(pull({kName}).status, 1);
  EXPECT_TRUE(hub.requests().empty());
  ASSERT_FALSE(proxy.requests().empty());
  EXPECT_TRUE(proxy.requests()[0].target.starts_with(hub.address()));
  environment_.push_back("no_proxy=127.0.0.1");
  EXPECT_EQ(pull({kName}).status, 0);
}

TEST_F(PullHub, TellsOnOneLineWhatIsWrong) {
  ScriptedHub hub;
  offer(hub);
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"hf:nothing"}, "hf:ORG/REPO"},
      {{"org/Tiny-GGUF"}, "werk pull hf:org/Tiny-GGUF"},
      {{"smollm2", "--revision", "main"}, "for models of the hub"},
      {{kName + ":Q4_K_M", "--file", "x.gguf"}, "leave out ':Q4_K_M'"},
      {{kName, "--revision", "nowhere"}, "no revision 'nowhere'"},
      {{kName, "--file", "Tiny-Q5_K_M.gguf"}, "did you mean: Tiny-Q4_K_M.gguf"},
      {{"hf:org/other"}, "no repository org/other"},
  };
  for (const auto& [words, expected] : cases) {
    const CommandRun run = pull(words);
    EXPECT_EQ(run.status, 1);
    EXPECT_TRUE(run.out.empty());
    EXPECT_NE(run.err.find(expected), std::string::npos) << run.err;
    const std::string last = run.err.substr(run.err.rfind("werk: "));
    EXPECT_EQ(std::ranges::count(last, '\n'), 1) << run.err;
  }
  EXPECT_FALSE(is_installed());
}

}  // namespace
}  // namespace werk::test
