#include "werk/engine/output_logs.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/loop_fixture.hpp"
#include "tests/support/temporary_folder.hpp"

namespace werk::engine {
namespace {

class OutputLogsTest : public test::LoopFixture {
 protected:
  void SetUp() override { make(); }
  void TearDown() override {
    follower_.reset();
    close();
  }
  void make() {
    logs_ = std::make_unique<OutputLogs>(executor(), offload_, OutputFiles(folder()), Masker());
  }
  void close() {
    bool closed = false;
    start(close_logs(closed));
    run_until([&closed] { return closed; });
  }
  async::awaitable<void> close_logs(bool& closed) {
    co_await logs_->close();
    closed = true;
  }
  std::filesystem::path folder() const { return home_.path() / "logs"; }

  async::awaitable<void> begin_follow(std::optional<std::string> model, std::size_t lines,
                                      bool& done) {
    const std::stop_token never;
    auto follower = co_await logs_->follow(model, lines, never);
    if (follower) follower_ = std::move(*follower);
    done = true;
  }
  void follow(std::optional<std::string> model, std::size_t lines = 10) {
    bool done = false;
    start(begin_follow(std::move(model), lines, done));
    run_until([&done] { return done; });
  }
  async::awaitable<void> read_next(std::optional<std::string>& into) {
    auto text = co_await follower_->next(stop_.get_token());
    into = text ? *text : "error: " + text.error().message;
  }
  std::string next() {
    std::optional<std::string> text;
    start(read_next(text));
    run_until([&text] { return text.has_value(); });
    return *text;
  }
  async::awaitable<void> read_lines(std::optional<std::string> model,
                                    std::optional<std::string>& into) {
    const std::stop_token never;
    auto text = co_await logs_->last_lines(model, 10, never);
    into = text ? *text : "error: " + text.error().message;
  }
  std::string lines(std::optional<std::string> model) {
    std::optional<std::string> text;
    start(read_lines(std::move(model), text));
    run_until([&text] { return text.has_value(); });
    return *text;
  }

  test::TemporaryFolder home_;
  async::Offload offload_{1};
  std::stop_source stop_;
  std::unique_ptr<OutputLogs> logs_;
  std::unique_ptr<OutputFollower> follower_;
};

TEST_F(OutputLogsTest, EachStartIsHeadedAndLinesFollowPrintable) {
  logs_->begin("a", "llama-server -m x");
  logs_->line("a", "loading\x1b[31m \xFF");
  close();
  const std::string text = *logs_->files().last_lines("a", 10);
  EXPECT_TRUE(text.starts_with("=== 20")) << text;
  EXPECT_NE(text.find("Z llama-server -m x\n"), std::string::npos);
  EXPECT_TRUE(text.ends_with("loading?[31m \xEF\xBF\xBD\n")) << text;
}

TEST_F(OutputLogsTest, WhatWasSaidBeforeAndAfterAFollowerCameIsToldOnce) {
  for (int i = 0; i < 50; ++i) logs_->line("a", "early " + std::to_string(i));
  std::string told;
  bool done = false;
  start(begin_follow("a", 1000, done));
  for (int i = 0; i < 50; ++i) {
    logs_->line("a", "mid " + std::to_string(i));
    poll();
  }
  run_until([&done] { return done; });
  logs_->line("a", "late");
  std::string wanted;
  for (int i = 0; i < 50; ++i) wanted += "early " + std::to_string(i) + "\n";
  for (int i = 0; i < 50; ++i) wanted += "mid " + std::to_string(i) + "\n";
  wanted += "late\n";
  while (told.size() < wanted.size()) told += next();
  EXPECT_EQ(told, wanted);
}

TEST_F(OutputLogsTest, AFollowerOfOneModelHearsNothingOfOthersAndOneOfAllHearsWhose) {
  follow("a");
  logs_->line("b", "other");
  logs_->line("a", "own");
  EXPECT_EQ(next(), "own\n");
  follow(std::nullopt);
  EXPECT_EQ(next(), "==> a <==\nown\n==> b <==\nother\n");
  logs_->line("b", "more");
  logs_->line("b", "more");
  logs_->line("a", "end");
  EXPECT_EQ(next(), "==> b <==\nmore\nmore\n==> a <==\nend\n");
}

TEST_F(OutputLogsTest, AFollowerThatLeavesWaitsNoLonger) {
  follow("a");
  std::optional<std::string> text;
  start(read_next(text));
  poll();
  stop_.request_stop();
  poll();
  EXPECT_EQ(text, "error: the reader has left");
}

TEST_F(OutputLogsTest, AReaderThatTakesNothingCostsItsOwnLinesOnly) {
  follow("a");
  const std::string line(1000, 'x');
  for (int i = 0; i < 2000; ++i) {
    logs_->line("a", line);
    if (i % 100 == 0) poll();
  }
  const std::string text = next();
  EXPECT_LE(text.size(), OutputLogs::kUnwrittenBytesMax);
  logs_->line("a", "here again");
  EXPECT_NE(next().find("line(s) are missing here: the reader was too slow\nhere again\n"),
            std::string::npos);
}

TEST_F(OutputLogsTest, ADiskThatTakesNothingHurtsNobody) {
  std::ofstream(home_.path() / "logs") << "a file where the folder should be";
  follow("a");
  for (int i = 0; i < 5; ++i) {
    logs_->line("a", "x");
    poll();
  }
  EXPECT_FALSE(next().empty()) << "who reads along reads on";
  EXPECT_EQ(lines("a"), "");
}

TEST_F(OutputLogsTest, TheEndReachesEveryFollower) {
  follow("a");
  logs_->line("a", "last");
  bool ended = false;
  const auto wait = [](OutputLogs& logs, bool& done) -> async::awaitable<void> {
    const std::stop_token never;
    co_await logs.end_followers(never);
    done = true;
  };
  start(wait(*logs_, ended));
  poll();
  EXPECT_FALSE(ended) << "its last text is not taken yet";
  EXPECT_EQ(next(), "last\n");
  EXPECT_EQ(next(), "");
  follower_.reset();
  poll();
  EXPECT_TRUE(ended);
}

}  // namespace
}  // namespace werk::engine
