#include "werk/app/command_line.hpp"

#include <gtest/gtest.h>

namespace werk::app {
namespace {

Parsed parse(std::vector<const char*> words) {
  words.insert(words.begin(), "werk");
  return parse_command_line(static_cast<int>(words.size()), words.data());
}

std::optional<std::string> value_of(const Parsed& parsed, std::string_view flag) {
  for (const GivenFlag& given : parsed.command->flags) {
    if (given.flag == flag) return given.value;
  }
  return std::nullopt;
}

TEST(CommandLine, TheSpecificationsLinesWorkAsWritten) {
  const Parsed one = parse(
      {"--backend", "llama-cpu", "--parallel", "4", "--ctx-size", "4096", "serve", "--model", "A"});
  ASSERT_TRUE(one.command) << one.text;
  EXPECT_EQ(one.command->command, CommandId::serve);
  EXPECT_EQ(value_of(one, "--backend"), "llama-cpu");
  EXPECT_EQ(value_of(one, "--model"), "A");
  EXPECT_TRUE(parse({"--backend", "auto", "--parallel", "4", "serve"}).command);
}

TEST(CommandLine, OptionsMayStandBehindTheCommandToo) {
  const Parsed parsed =
      parse({"serve", "--parallel", "4", "--port=0", "--allow-host", "a", "--allow-host", "b"});
  ASSERT_TRUE(parsed.command) << parsed.text;
  EXPECT_EQ(value_of(parsed, "--parallel"), "4");
  EXPECT_EQ(value_of(parsed, "--port"), "0");
  EXPECT_EQ(parsed.command->flags.size(), 4u);
}

TEST(CommandLine, AnUnknownFlagNamesTheNearestRightOne) {
  const Parsed parsed = parse({"serve", "--paralel", "4"});
  EXPECT_FALSE(parsed.command);
  EXPECT_EQ(parsed.exit_status, 2);
  EXPECT_NE(parsed.text.find("did you mean --parallel?"), std::string::npos) << parsed.text;
}

TEST(CommandLine, AnUnknownCommandNamesTheNearestRightOne) {
  const Parsed parsed = parse({"sevre"});
  EXPECT_FALSE(parsed.command);
  EXPECT_NE(parsed.text.find("serve"), std::string::npos) << parsed.text;
}

TEST(CommandLine, HelpAndVersionAreTextsWithStatusZero) {
  const Parsed help = parse({"--help"});
  EXPECT_EQ(help.exit_status, 0);
  EXPECT_NE(help.text.find("WERK_API_KEY"), std::string::npos);
  const Parsed version = parse({"--version"});
  EXPECT_EQ(version.exit_status, 0);
  EXPECT_NE(version.text.find("werk 0.1.0 (commit "), std::string::npos);
}

TEST(CommandLine, APullFromTheHubTakesItsWords) {
  const Parsed parsed = parse({"pull", "hf:o/r", "--alias", "a", "--file", "x.gguf", "--alias", "b",
                               "--revision", "v1", "--name", "n"});
  ASSERT_TRUE(parsed.command) << parsed.text;
  EXPECT_EQ(parsed.command->command, CommandId::pull);
  EXPECT_EQ(parsed.command->subject, "hf:o/r");
  EXPECT_EQ(parsed.command->file, "x.gguf");
  EXPECT_EQ(parsed.command->revision, "v1");
  EXPECT_EQ(parsed.command->name, "n");
  EXPECT_EQ(parsed.command->aliases, (std::vector<std::string>{"a", "b"}));
}

TEST(CommandLine, TheStoreCommandsTakeTheirWords) {
  const Parsed parsed = parse({"import", "--alias", "c", "x.gguf", "--name", "a/b", "--link",
                               "--alias", "d", "--model-home", "/h"});
  ASSERT_TRUE(parsed.command) << parsed.text;
  EXPECT_EQ(parsed.command->words, std::vector<std::string>{"x.gguf"});
  EXPECT_EQ(parsed.command->name, "a/b");
  EXPECT_EQ(parsed.command->aliases, (std::vector<std::string>{"c", "d"}));
  EXPECT_TRUE(parsed.command->link);
  EXPECT_EQ(value_of(parsed, "--model-home"), "/h");
  EXPECT_EQ(parse({"engine", "install", "llama-server", "--if-missing"}).command->if_missing,
            IfMissing::yes);
  EXPECT_EQ(parse({"list", "--json"}).command->json, Json::yes);
}

TEST(CommandLine, WhatStandsBehindTwoDashesOfALaunchIsTheClients) {
  const Parsed parsed =
      parse({"launch", "claude", "--model", "m", "--anyway", "--", "-p", "serve", "--model", "--"});
  ASSERT_TRUE(parsed.command) << parsed.text;
  EXPECT_EQ(parsed.command->command, CommandId::launch);
  EXPECT_EQ(parsed.command->subject, "claude");
  EXPECT_EQ(parsed.command->anyway, Anyway::yes);
  EXPECT_EQ(value_of(parsed, "--model"), "m");
  EXPECT_EQ(parsed.command->words, (std::vector<std::string>{"-p", "serve", "--model", "--"}));
  EXPECT_FALSE(parse({"launch"}).command);
}

TEST(CommandLine, ThePromptOfARunMayLookLikeACommandOrAnOption) {
  const Parsed command = parse({"run", "m", "serve", "--temperature", "0.5", "--parallel", "2"});
  ASSERT_TRUE(command.command) << command.text;
  EXPECT_EQ(command.command->command, CommandId::ask);
  EXPECT_EQ(command.command->words, (std::vector<std::string>{"m", "serve"}));
  EXPECT_EQ(command.command->ask.temperature, 0.5);
  EXPECT_EQ(value_of(command, "--parallel"), "2");
  const Parsed option = parse({"run", "m", "-", "--", "--help", "--"});
  ASSERT_TRUE(option.command) << option.text;
  EXPECT_EQ(option.command->words, (std::vector<std::string>{"m", "-", "--help", "--"}));
  EXPECT_EQ(parse({"run", "m", "--max-tokens", "0"}).exit_status, 2);
  EXPECT_EQ(parse({"list", "--", "x"}).exit_status, 2);
}

TEST(CommandLine, TopTakesHowOftenAndWhetherOnce) {
  const Parsed top = parse({"top", "--url", "http://h:1", "--interval", "250ms"});
  ASSERT_TRUE(top.command) << top.text;
  EXPECT_EQ(top.command->command, CommandId::top);
  EXPECT_EQ(top.command->url, "http://h:1");
  EXPECT_EQ(top.command->top.interval, std::chrono::milliseconds(250));
  EXPECT_EQ(top.command->top.once, Once::no);
  const Parsed once = parse({"top", "--once", "--json"});
  ASSERT_TRUE(once.command) << once.text;
  EXPECT_EQ(once.command->top.once, Once::yes);
  EXPECT_EQ(once.command->json, Json::yes);
  EXPECT_EQ(once.command->top.interval, std::chrono::seconds(1));
  EXPECT_EQ(parse({"top", "--json"}).exit_status, 2) << "a screen is no JSON";
  for (const char* interval : {"soon", "1ms", "2h"})
    EXPECT_EQ(parse({"top", "--interval", interval}).exit_status, 2) << interval;
}

TEST(CommandLine, ABenchTakesItsLevelsWithBlanksOrCommas) {
  for (const std::vector<const char*>& levels :
       {std::vector<const char*>{"1", "2", "4", "8"}, {"1,2,4,8"}, {"1,2", "4,8"}}) {
    std::vector<const char*> words = {"bench", "--model", "a", "--model", "b", "--concurrency"};
    words.insert(words.end(), levels.begin(), levels.end());
    words.insert(words.end(), {"--requests", "24", "--warmup", "--url", "http://h"});
    const Parsed parsed = parse(words);
    ASSERT_TRUE(parsed.command) << parsed.text;
    EXPECT_EQ(parsed.command->command, CommandId::bench);
    EXPECT_EQ(parsed.command->bench.models, (std::vector<std::string>{"a", "b"}));
    EXPECT_EQ(parsed.command->bench.concurrency, (std::vector<std::uint32_t>{1, 2, 4, 8}));
    EXPECT_EQ(parsed.command->bench.requests, 24u);
    EXPECT_EQ(parsed.command->bench.warmup, Warmup::yes);
    EXPECT_EQ(parsed.command->url, "http://h");
    EXPECT_TRUE(parsed.command->flags.empty()) << "its models are no default of a node";
  }
  const Parsed compare = parse({"bench", "compare", "a.json", "b.json"});
  ASSERT_TRUE(compare.command) << compare.text;
  EXPECT_EQ(compare.command->command, CommandId::bench_compare);
  EXPECT_EQ(compare.command->words, (std::vector<std::string>{"a.json", "b.json"}));
  EXPECT_EQ(parse({"bench", "--dialect", "anthropic"}).command->bench.dialect,
            bench::Dialect::anthropic);
}

}  // namespace
}  // namespace werk::app
