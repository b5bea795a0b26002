#include "werk/process/signal_pipe.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>

namespace werk::process {
namespace {

bool is_readable(const SignalPipe& signals) {
  pollfd file{signals.descriptor(), POLLIN, 0};
  return ::poll(&file, 1, 0) == 1;
}

TEST(SignalPipe, GivesSignalsInTheirOrderAndTheyDoNothingElse) {
  SignalPipe signals;
  EXPECT_FALSE(is_readable(signals));
  ::raise(SIGWINCH);
  ::raise(SIGTSTP);
  ::raise(SIGTERM);
  EXPECT_TRUE(is_readable(signals));
  EXPECT_EQ(signals.take(), (std::vector<int>{SIGWINCH, SIGTSTP, SIGTERM}));
  EXPECT_FALSE(is_readable(signals));
  ::raise(SIGINT);
  EXPECT_EQ(signals.take(), std::vector<int>{SIGINT}) << "the one before was taken";
}

TEST(SignalPipe, ASecondEndingSignalEndsTheProcessWhereNobodyTookTheFirst) {
  const auto twice = [] {
    const SignalPipe signals;
    ::raise(SIGTERM);
    ::raise(SIGTERM);
  };
  EXPECT_EXIT(twice(), ::testing::KilledBySignal(SIGTERM), "");
}

TEST(SignalPipe, WhatIsIgnoredStaysIgnored) {
  ::signal(SIGHUP, SIG_IGN);
  {
    SignalPipe signals;
    ::raise(SIGHUP);
    EXPECT_TRUE(signals.take().empty());
  }
  struct sigaction after {};
  ::sigaction(SIGHUP, nullptr, &after);
  EXPECT_EQ(after.sa_handler, SIG_IGN);
  ::signal(SIGHUP, SIG_DFL);
}

TEST(SignalPipe, LeavesSignalsAsItFoundThem) {
  { const SignalPipe signals; }
  struct sigaction after {};
  ::sigaction(SIGTERM, nullptr, &after);
  EXPECT_EQ(after.sa_handler, SIG_DFL);
}

}  // namespace
}  // namespace werk::process
