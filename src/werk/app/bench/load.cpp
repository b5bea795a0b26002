#include "werk/app/bench/load.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>

#include "werk/base/assert.hpp"
#include "werk/base/digest.hpp"
#include "werk/base/text.hpp"

namespace werk::app::bench {

namespace json = boost::json;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t kRefusalBytesMax = std::size_t{64} << 10;
constexpr std::size_t kNotedMax = std::size_t{1} << 20;  // times for which room is kept beforehand
constexpr auto kLookEvery = 1s;
constexpr int kLastLooksMax = 8;  // in which the node gets done with calls that have ended
constexpr std::size_t kIdleConnectionsMax = 4096;

double seconds_between(async::TimePoint from, async::TimePoint to) {
  return std::chrono::duration<double>(to - from).count();
}

http::ClientProfile profile() {
  http::ClientProfile profile;
  profile.idle_connections_max = kIdleConnectionsMax;
  return profile;
}

bool is_stream(const http::Headers& headers) {
  return to_lower(headers.find("content-type").value_or("")).starts_with("text/event-stream");
}

}  // namespace

// What the requests of one run share; lives in run().
struct Load::Run {
  RunRecord& record;
  std::uint64_t round = 0;
  std::stop_token stop;
  async::TimePoint begun;
  std::size_t next = 0;
  CallTimes times = {};

  void note(const json::object& page) {
    const auto count = processes_in(page);
    if (count) record.engine_processes = std::max(record.engine_processes.value_or(0), *count);
    times.read(page, record.requests);
  }
};

Load::Load(async::Executor executor, async::Clock& clock, const Plan& plan,
           std::vector<Server> servers, OnEnd on_end)
    : executor_(executor),
      clock_(clock),
      plan_(plan),
      servers_(std::move(servers)),
      on_end_(std::move(on_end)),
      client_(executor, clock, profile()),
      tag_("bench-" + random_hex(8)) {
  WERK_ASSERT(servers_.size() == 1 || servers_.size() == plan.models.size());
}

async::awaitable<std::optional<json::object>> Load::observe_now(std::stop_token stop) {
  if (servers_.size() > 1) co_return std::nullopt;
  auto page = co_await observe(client_, clock_, servers_.front(), stop);
  if (page) {
    const std::string version = version_in(*page);
    if (!version.empty()) version_ = version;
  }
  co_return page;
}

async::awaitable<void> Load::run(RunRecord& record, std::uint64_t round, std::stop_token stop) {
  record.observability_before = co_await observe_now(stop);
  record.requests.assign(plan_.requests, RequestRecord());
  record.inter_token_seconds.reserve(
      std::min<std::size_t>(std::size_t{plan_.requests} * plan_.max_tokens, kNotedMax));
  Run run{record, round, stop, clock_.now()};
  {
    async::TaskGroup looks(executor_);
    async::TaskGroup tasks(executor_);
    std::stop_source enough;
    if (record.observability_before) {
      run.note(*record.observability_before);
      looks.spawn(watch(run, enough.get_token()));
    }
    if (record.level.callers > 0) {
      for (std::uint32_t i = 0; i < record.level.callers; ++i) tasks.spawn(call(run));
    } else {
      co_await come_by_rate(run, tasks, record.level.rate);
    }
    co_await tasks.join();
    record.elapsed_seconds = seconds_between(run.begun, clock_.now());
    enough.request_stop();
    co_await looks.join();
  }
  if (!record.observability_before || stop.stop_requested()) co_return;
  co_await look_last(run);
}

async::awaitable<void> Load::look_last(Run& run) {
  for (int i = 0; i < kLastLooksMax; ++i) {
    auto page = co_await observe_now(run.stop);
    if (!page) co_return;
    run.note(*page);
    run.record.observability_after = std::move(*page);
    if (!run.times.any_under_way(*run.record.observability_after)) co_return;
  }
}

async::awaitable<void> Load::watch(Run& run, std::stop_token stop) {
  while (true) {
    const bool slept = co_await async::sleep_for(clock_, executor_, kLookEvery, stop);
    if (!slept || run.stop.stop_requested()) co_return;
    const auto page = co_await observe_now(stop);
    if (page) run.note(*page);
  }
}

async::awaitable<void> Load::call(Run& run) {
  while (run.next < plan_.requests && !run.stop.stop_requested()) {
    const std::size_t number = run.next++;
    co_await ask_in(run, number, clock_.now());
  }
}

async::awaitable<void> Load::come_by_rate(Run& run, async::TaskGroup& tasks, double rate) {
  const std::vector<double> times = arrivals(plan_, run.round, rate);
  for (std::size_t number = 0; number < times.size(); ++number) {
    const std::chrono::duration<double> offset(times[number]);
    const async::TimePoint due = run.begun + std::chrono::duration_cast<async::Duration>(offset);
    const bool slept = co_await async::sleep_for(clock_, executor_, due - clock_.now(), run.stop);
    if (!slept) co_return;
    tasks.spawn(ask_in(run, number, due));
  }
}

async::awaitable<void> Load::ask_in(Run& run, std::size_t number, async::TimePoint due) {
  RequestRecord& record = run.record.requests[number];
  record.begun_seconds = seconds_between(run.begun, due);
  co_await ask(run, record, number, due);
  if (on_end_) on_end_(run.record);
}

async::awaitable<void> Load::ask_once(RequestRecord& record, std::uint64_t number,
                                      std::stop_token stop) {
  RunRecord unused;
  // A round that no run has, so that what is read into a prompt cache here serves no later request.
  Run run{unused, ~std::uint64_t{0} / plan_.requests, stop, clock_.now()};
  co_await ask(run, record, number, clock_.now());
}

async::awaitable<void> Load::ask(Run& run, RequestRecord& record, std::uint64_t number,
                                 async::TimePoint due) {
  record.model = model_of(plan_, number);
  const Server& asked = server(number);
  const std::string body = body_of(plan_, run.round, number);
  http::ClientRequest request;
  request.method = "POST";
  request.target = asked.api + std::string(path_of(plan_.dialect));
  request.headers = headers_for(asked, plan_.dialect);
  request.body = body;
  std::string id = fmt::format("{}-{}", tag_, ++asked_);
  request.headers.add("X-Request-Id", id);
  auto sent = co_await client_.send(asked.address, std::move(request), run.stop);
  Status outcome;
  if (!sent) {
    outcome = fail(of_server(std::move(sent.error())));
  } else {
    http::Response& response = **sent;
    record.status = response.status;
    const auto known_as = response.headers.find("x-request-id");
    if (known_as) id = *known_as;
    if (version_.empty()) version_ = printable(response.headers.find("server").value_or(""));
    if (response.status == 200 && is_stream(response.headers)) {
      outcome = co_await read_stream(run, record, response, due);
    } else {
      outcome = co_await read_refusal(record, response, run.stop);
    }
  }
  record.elapsed_seconds = seconds_between(due, clock_.now());
  if (run.stop.stop_requested()) co_return;
  if (!outcome) record.error = outcome.error().message;
  record.ended = true;
  run.times.expect(std::move(id), number);
}

async::awaitable<Status> Load::read_stream(Run& run, RequestRecord& record,
                                           http::Response& response, async::TimePoint due) {
  AnswerScan scan(plan_.dialect);
  while (true) {
    auto bytes = co_await response.read_some(run.stop);
    if (!bytes) co_return fail(of_server(std::move(bytes.error())));
    if (bytes->empty()) break;
    auto pieces = scan.feed(*bytes);
    if (!pieces) co_return pass_on(pieces);
    if (*pieces > 0) note_pieces(run, record, *pieces, due);
  }
  Status whole = scan.finish();
  record.usage = scan.usage();
  record.completion_tokens = scan.completion_tokens();
  record.finish_reason = scan.finish_reason();
  co_return whole;
}

// Pieces that came in one read came at one time.
void Load::note_pieces(Run& run, RequestRecord& record, std::uint32_t pieces,
                       async::TimePoint due) {
  const double now = seconds_between(due, clock_.now());
  std::vector<double>& gaps = run.record.inter_token_seconds;
  if (record.last_seconds) {
    gaps.push_back(now - *record.last_seconds);
  } else {
    record.ttft_seconds = now;
  }
  gaps.insert(gaps.end(), pieces - 1, 0.0);
  record.last_seconds = now;
  record.pieces += pieces;
}

async::awaitable<Status> Load::read_refusal(RequestRecord& record, http::Response& response,
                                            std::stop_token stop) {
  std::string body;
  while (body.size() < kRefusalBytesMax) {
    auto bytes = co_await response.read_some(stop);
    if (!bytes) co_return fail(of_server(std::move(bytes.error())));
    if (bytes->empty()) break;
    body.append(*bytes);
  }
  if (record.status == 200)
    co_return fail(ErrorCode::engine_failed, "the server answered with no stream of events");
  co_return fail(ErrorCode::engine_failed,
                 fmt::format("HTTP {}: {}", record.status, error_words(body)));
}

}  // namespace werk::app::bench
