#include "werk/app/bench/report.hpp"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>

namespace werk::app::bench {
namespace {

namespace json = boost::json;

RequestRecord success(double elapsed, std::optional<std::uint64_t> tokens) {
  RequestRecord request;
  request.model = "a";
  request.elapsed_seconds = elapsed;
  request.ttft_seconds = elapsed / 4;
  request.last_seconds = elapsed;
  request.pieces = 4;
  request.queue_seconds = elapsed / 8;
  request.load_seconds = 0;
  request.completion_tokens = tokens;
  if (tokens) request.usage = json::object{{"completion_tokens", *tokens}};
  request.finish_reason = "stop";
  request.status = 200;
  request.ended = true;
  return request;
}

RequestRecord failure(std::string error) {
  RequestRecord request = success(0.1, std::nullopt);
  request.ttft_seconds.reset();
  request.queue_seconds.reset();
  request.load_seconds.reset();
  request.status = 404;
  request.error = std::move(error);
  return request;
}

RunRecord run(Side side, std::uint32_t repeat, double elapsed) {
  RunRecord made;
  made.side = side;
  made.level = {2, 0};
  made.repeat = repeat;
  made.elapsed_seconds = elapsed;
  made.requests = {success(1, 10), success(2, 20)};
  made.inter_token_seconds = {0.01, 0.02, 0.03};
  return made;
}

Session session() {
  Session made;
  made.plan.models = {"a", "b"};
  made.plan.levels = {{2, 0}};
  made.plan.requests = 2;
  made.first = {"http://one", "werk 0.1.0"};
  made.runs = {run(Side::first, 0, 3)};
  return made;
}

TEST(Report, HasTheMembersOfTheSpecification) {
  const json::object report = report_of(session());
  for (const std::string_view name : {"models", "warmup", "notes", "runs"})
    EXPECT_TRUE(report.contains(name)) << name;
  const json::object& one = report.at("runs").at(0).as_object();
  EXPECT_EQ(one.at("concurrency").as_uint64(), 2u);
  EXPECT_EQ(one.at("elapsed_seconds").as_double(), 3);
  EXPECT_EQ(one.at("successful_requests").as_uint64(), 2u);
  EXPECT_EQ(one.at("aggregate_tokens_per_second").as_double(), 10);
  EXPECT_EQ(one.at("ttft_median_seconds").as_double(), 0.375);
  const json::object& request = one.at("requests").at(1).as_object();
  EXPECT_EQ(request.at("model").as_string(), "a");
  EXPECT_EQ(request.at("elapsed_seconds").as_double(), 2);
  EXPECT_EQ(request.at("ttft_seconds").as_double(), 0.5);
  EXPECT_EQ(request.at("completion_tokens").as_uint64(), 20u);
  EXPECT_EQ(request.at("usage").at("completion_tokens").as_uint64(), 20u);
  EXPECT_EQ(request.at("request_tokens_per_second").as_double(), 10);
  EXPECT_EQ(request.at("inter_token_mean_seconds").as_double(), 0.5);
  EXPECT_EQ(request.at("queue_seconds").as_double(), 0.25);
  EXPECT_EQ(request.at("load_seconds").as_double(), 0);
  EXPECT_TRUE(request.at("error").is_null());
}

TEST(Report, WhatAServerDoesNotTellIsNull) {
  Session quiet = session();
  quiet.first.version.clear();
  quiet.runs[0].requests = {success(1, std::nullopt), failure("HTTP 404: no such model")};
  quiet.runs[0].inter_token_seconds.clear();
  const json::object report = report_of(quiet);
  const json::object& one = report.at("runs").at(0).as_object();
  for (const std::string_view name :
       {"observability_before", "observability_after", "engine_processes", "output_tokens",
        "aggregate_tokens_per_second", "request_tokens_per_second_median"})
    EXPECT_TRUE(one.at(name).is_null()) << name;
  EXPECT_TRUE(one.at("percentiles").at("inter_token_seconds").is_null());
  EXPECT_EQ(one.at("failed_requests").as_uint64(), 1u);
  EXPECT_TRUE(report.at("versions").at("server").is_null());
  EXPECT_TRUE(report.at("start_state").is_null());
  const json::object& failed = one.at("requests").at(1).as_object();
  EXPECT_TRUE(failed.at("ttft_seconds").is_null());
  EXPECT_TRUE(failed.at("request_tokens_per_second").is_null());
  EXPECT_TRUE(failed.at("queue_seconds").is_null());
  EXPECT_TRUE(failed.at("load_seconds").is_null());
  EXPECT_EQ(failed.at("error").as_string(), "HTTP 404: no such model");
  EXPECT_EQ(failed.at("status").as_int64(), 404);
}

TEST(Report, WaitsThatATellingServerDidNotTellAreCounted) {
  Session told = session();
  told.runs[0].requests.push_back(failure("HTTP 503: full"));
  told.runs[0].requests.emplace_back();
  told.runs[0].observability_after.emplace();
  EXPECT_EQ(untold_waits(told), 0u);
  told.runs[0].requests[1].queue_seconds.reset();
  EXPECT_EQ(untold_waits(told), 1u);
  told.runs[0].observability_after.reset();
  EXPECT_EQ(untold_waits(told), 0u) << "it tells nothing at all";
}

TEST(Report, RequestsThatHadNotEndedAreCountedAndNotListed) {
  Session cut = session();
  cut.interrupted = true;
  cut.runs[0].requests.emplace_back();
  const json::object report = report_of(cut);
  EXPECT_TRUE(report.at("interrupted").as_bool());
  EXPECT_EQ(report.at("runs").at(0).at("unfinished_requests").as_uint64(), 1u);
  EXPECT_EQ(report.at("runs").at(0).at("requests").as_array().size(), 2u);
}

TEST(Report, RatiosAreOfPairsAndLeaveTheWarmUpOut) {
  Session two = session();
  two.against = ServerRecord{"http://two", ""};
  two.plan.repeat = 2;
  two.runs = {run(Side::first, 0, 9), run(Side::against, 0, 3), run(Side::against, 0, 4),
              run(Side::first, 0, 4), run(Side::first, 1, 4),   run(Side::against, 1, 2)};
  two.runs[0].discarded = true;
  two.runs[1].discarded = true;
  const auto ratios = ratios_of(two);
  ASSERT_EQ(ratios.size(), 1u);
  EXPECT_EQ(ratios[0].tokens_per_second.pairs, 2u);
  EXPECT_EQ(ratios[0].tokens_per_second.low, 0.5);
  EXPECT_EQ(ratios[0].tokens_per_second.high, 1);
  EXPECT_EQ(ratios[0].ttft_p50.median, 1);
  const json::object report = report_of(two);
  EXPECT_EQ(report.at("ratios").at(0).at("aggregate_tokens_per_second").at("median").as_double(),
            0.75);
  EXPECT_EQ(report.at("runs").at(1).at("side").as_string(), "B");
  EXPECT_NE(table_of(two).find("0.750"), std::string::npos) << table_of(two);
}

TEST(Table, FitsEightyColumnsAndGroupsErrors) {
  Session long_one = session();
  long_one.against = ServerRecord{"http://two", "llama.cpp"};
  long_one.notes = {std::string(150, 'n') + " " + std::string(30, 'm')};
  long_one.plan.models = {"org/some-rather-long-model-name:Q4_K_M", "another-model", "third-model"};
  long_one.runs.push_back(run(Side::against, 0, 123'456));
  long_one.runs[1].level = {10'000, 0};
  long_one.runs[0].requests[0].elapsed_seconds = 12'345;
  long_one.runs[0].requests.assign(1000, success(12'345, 1'000));
  long_one.runs[1].requests = {failure("HTTP 503: no place"), failure("HTTP 503: no place")};
  const std::string table = table_of(long_one);
  EXPECT_NE(table.find("2 failed: HTTP 503: no place"), std::string::npos) << table;
  std::size_t begin = 0;
  while (begin < table.size()) {
    const std::size_t end = table.find('\n', begin);
    const std::string line = table.substr(begin, end - begin);
    // A word that is longer than a line stays whole.
    if (line.find("nnn") == std::string::npos) {
      EXPECT_LE(line.size(), 80u) << line;
    }
    begin = end + 1;
  }
}

TEST(Table, NumbersHaveThreeDigitsThatCount) {
  EXPECT_EQ(number_text(0), "0");
  EXPECT_EQ(number_text(0.03123), "0.0312");
  EXPECT_EQ(number_text(8.416), "8.42");
  EXPECT_EQ(number_text(1234.5), "1234");
  EXPECT_EQ(time_text(0.8304), "830ms");
  EXPECT_EQ(time_text(1.241), "1.24s");
  EXPECT_EQ(time_text(std::nullopt), "-");
}

TEST(ObservabilityPage, TellsProcessesAndWhatIsLoaded) {
  const json::object page =
      json::parse(R"({"runtimes":[{"model":"a","state":"ready","pid":12},)"
                  R"({"model":"b","state":"starting","pid":13},{"model":"c","state":"ready"}]})")
          .as_object();
  EXPECT_EQ(processes_in(page), 2u);
  EXPECT_FALSE(processes_in({}));
  EXPECT_EQ(start_state_of(page, page, {"a"}), "warm");
  EXPECT_EQ(start_state_of({}, page, {"a", "c"}), "cold");
  EXPECT_EQ(start_state_of({}, page, {"an-alias"}), "");
  const json::object before =
      json::parse(R"({"runtimes":[{"model":"c","state":"ready"}]})").as_object();
  EXPECT_EQ(start_state_of(before, page, {"a", "c"}), "partly warm");
}

}  // namespace
}  // namespace werk::app::bench
