#include "werk/app/commands/ps.hpp"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <sstream>

#include "werk/base/timestamp.hpp"

namespace werk::app {
namespace {

std::string table(std::string_view page, std::size_t columns = 80) {
  const auto now = *time_of("2026-11-29T22:44:12Z");
  return ps_table(boost::json::parse(page).as_object(), now, columns);
}

TEST(Ps, ALineForEachRuntimeTellsWhatAPersonAsks) {
  EXPECT_EQ(table(R"({"runtimes":[
    {"model":"small","engine":"llama-cpu","state":"ready","pid":4242,"since":"2026-11-29T22:44:02Z",
     "slots":{"total":4,"busy":1},"waiting":2,"pinned":true,"memory_bytes":5400000000},
    {"model":"b","engine":"llama-cpu","state":"starting","pid":null,"since":"2026-11-29T22:44:12Z",
     "slots":{"total":1,"busy":0},"waiting":0,"pinned":false,"memory_bytes":null}],
    "pins":["small","other"]})"),
            "MODEL  ENGINE     STATE     SLOTS  WAIT  MEMORY   PID  SINCE  PIN\n"
            "small  llama-cpu  ready       1/4     2  5.4 GB  4242   10 s  yes\n"
            "b      llama-cpu  starting    0/1     0       -     -    0 s\n"
            "pinned, not loaded: other\n");
}

TEST(Ps, ALongNameIsCutToTheWidthOfTheTerminalAndWholeInAPipe) {
  const std::string id(200, 'x');
  const std::string page =
      R"({"runtimes":[{"model":")" + id +
      R"(","engine":"transformers-cuda","state":"stopping","pid":4194304,)"
      R"("since":"2026-11-27T22:44:02Z","slots":{"total":128,"busy":128},"waiting":1024,)"
      R"("pinned":true}]})";
  std::istringstream lines(table(page));
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
  EXPECT_NE(table(page, 0).find(id), std::string::npos);
}

TEST(Ps, NothingLoadedSaysWhatLoads) {
  EXPECT_NE(table(R"({"runtimes":[],"pins":[]})").find("`werk load MODEL`"), std::string::npos);
  EXPECT_NE(table("{}").find("nothing is loaded"), std::string::npos);
}

TEST(Ps, WhatANodeSaysCannotSteerTheTerminal) {
  const std::string text = table(R"({"runtimes":[{"model":"a\u001b[2J","state":"ready"}]})");
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace werk::app
