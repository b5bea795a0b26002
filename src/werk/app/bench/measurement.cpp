#include "werk/app/bench/measurement.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "werk/app/bench/load.hpp"
#include "werk/app/bench/machine.hpp"
#include "werk/app/bench/report.hpp"
#include "werk/app/terminal.hpp"
#include "werk/async/loop.hpp"
#include "werk/async/task_group.hpp"
#include "werk/process/child.hpp"
#include "werk/process/signals.hpp"

namespace werk::app::bench {

using namespace std::chrono_literals;

namespace {

constexpr auto kShowEvery = 100ms;
constexpr double kBusyLoad = 0.5;  // of the load average, for each core

bool any_run(const Session& session, bool (*is_so)(const RunRecord& run)) {
  return std::ranges::any_of(session.runs, is_so);
}

bool lacks_tokens(const RunRecord& run) {
  return std::ranges::any_of(run.requests, [](const RequestRecord& request) {
    return request.ended && request.error.empty() && !request.completion_tokens;
  });
}

std::size_t unfinished(const Session& session) {
  std::size_t count = 0;
  for (const RunRecord& run : session.runs)
    count +=
        static_cast<std::size_t>(std::ranges::count(run.requests, false, &RequestRecord::ended));
  return count;
}

}  // namespace

struct Measurement::State {
  State(Session& measured, Server first_server, std::vector<Server> against_servers)
      : session(measured), clock(loop.executor()), tasks(loop.executor()) {
    process::Children(loop.executor(), clock).raise_descriptor_limit();
    const auto show = [this](const RunRecord& run) { progress(run); };
    first = std::make_unique<Load>(loop.executor(), clock, session.plan,
                                   std::vector<Server>{std::move(first_server)}, show);
    if (against_servers.empty()) return;
    against = std::make_unique<Load>(loop.executor(), clock, session.plan,
                                     std::move(against_servers), show);
  }

  async::awaitable<void> measure();
  async::awaitable<void> look_first();
  async::awaitable<Status> warm_up(Load& load);
  async::awaitable<void> measure_level(Level level, std::uint32_t ordinal);
  async::awaitable<void> measure_run(RunRecord record, std::uint64_t round);
  void progress(const RunRecord& run);
  std::string start_state() const;

  Session& session;
  async::Loop loop;
  async::SteadyClock clock;
  async::TaskGroup tasks;
  std::stop_source stop;
  std::unique_ptr<Load> first;
  std::unique_ptr<Load> against;
  Status problem;
  PassingLine line;
  async::TimePoint shown_at;
};

Measurement::Measurement(Session& session, Server first, std::vector<Server> against)
    : state_(std::make_unique<State>(session, std::move(first), std::move(against))) {}

Measurement::~Measurement() = default;

Status Measurement::run() {
  State& state = *state_;
  Session& session = state.session;
  {
    const process::SignalWatch signals(state.loop.executor(),
                                       [&state](int) { state.stop.request_stop(); });
    state.tasks.spawn(state.measure());
    state.loop.run_until([&state] { return state.tasks.running() == 0; });
    state.loop.poll();
  }
  state.line.clear();
  session.interrupted = state.stop.stop_requested();
  session.machine.load_after = load_average();
  session.start_state = state.start_state();
  session.first.version = state.first->version();
  if (state.against) session.against->version = state.against->version();
  return state.problem;
}

async::awaitable<void> Measurement::State::measure() {
  co_await look_first();
  if (session.warmup) {
    problem = co_await warm_up(*first);
    if (problem && against) problem = co_await warm_up(*against);
    if (!problem) co_return;
  }
  for (std::uint32_t i = 0; i < session.plan.levels.size(); ++i) {
    if (stop.stop_requested()) co_return;
    co_await measure_level(session.plan.levels[i], i);
  }
}

async::awaitable<void> Measurement::State::look_first() {
  const auto page = co_await first->observe_now(stop.get_token());
  if (!page) {
    session.notes.push_back(fmt::format(
        "{} has no observability page: what is loaded and how many engines run isn't known",
        session.first.url));
  }
}

async::awaitable<Status> Measurement::State::warm_up(Load& load) {
  for (std::uint32_t i = 0; i < session.plan.models.size(); ++i) {
    if (stop.stop_requested()) break;
    line.show(fmt::format("warming up: {}", session.plan.models[i]));
    RequestRecord record;
    co_await load.ask_once(record, i, stop.get_token());
    if (record.error.empty()) continue;
    co_return fail(ErrorCode::engine_failed,
                   fmt::format("{}: the warm-up request for {} failed: {}", load.server(i).url,
                               record.model, record.error));
  }
  co_return Status();
}

// With two servers there is one pair more, which only warms up.
async::awaitable<void> Measurement::State::measure_level(Level level, std::uint32_t ordinal) {
  const std::uint32_t rounds = session.plan.repeat + (against ? 1 : 0);
  for (std::uint32_t i = 0; i < rounds; ++i) {
    const std::uint64_t round = std::uint64_t{ordinal} * rounds + i;
    for (int turn = 0; turn < (against ? 2 : 1); ++turn) {
      if (stop.stop_requested()) co_return;
      RunRecord record;
      record.level = level;
      record.side = against && (turn == 0) == (i % 2 == 1) ? Side::against : Side::first;
      record.discarded = against && i == 0;
      record.repeat = against && i > 0 ? i - 1 : i;
      co_await measure_run(std::move(record), round);
    }
  }
}

async::awaitable<void> Measurement::State::measure_run(RunRecord record, std::uint64_t round) {
  Load& load = record.side == Side::first ? *first : *against;
  co_await load.run(record, round, stop.get_token());
  session.runs.push_back(std::move(record));
}

std::string Measurement::State::start_state() const {
  if (session.warmup) return "warm";
  if (session.runs.empty() || session.runs.front().side != Side::first) return {};
  const RunRecord& run = session.runs.front();
  if (!run.observability_before || !run.observability_after) return {};
  return start_state_of(*run.observability_before, *run.observability_after, session.plan.models);
}

void Measurement::State::progress(const RunRecord& run) {
  const async::TimePoint now = clock.now();
  if (!line.is_shown_at_all() || now - shown_at < kShowEvery) return;
  shown_at = now;
  const auto done = std::ranges::count(run.requests, true, &RequestRecord::ended);
  const auto failed = std::ranges::count_if(
      run.requests, [](const RequestRecord& request) { return !request.error.empty(); });
  line.show(fmt::format("{} {}{}{}: {} of {} done{}", name_of(run.level),
                        run.level.callers > 0 ? "callers" : "requests",
                        !session.against          ? ""
                        : run.side == Side::first ? ", A"
                                                  : ", B",
                        run.discarded ? " (warm-up)" : "", done, run.requests.size(),
                        failed > 0 ? fmt::format(", {} failed", failed) : std::string()));
}

void add_notes(Session& session) {
  const auto note = [&session](std::string text) { session.notes.push_back(std::move(text)); };
  note(
      "the time to the first token holds everything before it: waiting in line, reading the prompt "
      "and, where a model was cold, its load");
  if (any_run(session, lacks_tokens))
    note("the server counted no tokens in some answers, so tokens/s isn't known there");
  const std::size_t untold = untold_waits(session);
  if (untold > 0) {
    note(fmt::format(
        "how long {} of the requests waited isn't known: the node tells it of its last calls only",
        untold));
  }
  if (session.plan.prompts.kind == PromptKind::made)
    note("made prompts have about as many tokens as asked for; usage tells how many");
  if (session.plan.dialect == Dialect::anthropic &&
      session.plan.end_of_sequence == EndOfSequence::ignored)
    note("the Messages dialect knows no way to ignore the end of a sequence");
  const Machine& machine = session.machine;
  if (!machine.load_before.empty() && machine.load_before.front() > kBusyLoad * machine.cores) {
    note(fmt::format("the machine was busy before it began (load average {:.2f}, {} cores)",
                     machine.load_before.front(), machine.cores));
  }
  if (session.interrupted && unfinished(session) > 0) {
    note(fmt::format("{} requests had not ended when it was interrupted, and aren't counted",
                     unfinished(session)));
  }
}

}  // namespace werk::app::bench
