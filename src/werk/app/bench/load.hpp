// Load: carries out the runs of a plan against one server, or one for each model, all of it on one
// loop: callers that ask again as soon as they have their answer, or requests that come when the
// plan says. Nothing is allocated for an event beyond the note of its time. Owned by the command
// and outlived by its loop and clock; a stop ends what is under way at once and leaves it
// unfinished in the record.
#pragma once

#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "werk/app/bench/answer_scan.hpp"
#include "werk/app/bench/call_times.hpp"
#include "werk/app/bench/plan.hpp"
#include "werk/app/bench/record.hpp"
#include "werk/app/bench/server.hpp"
#include "werk/async/clock.hpp"
#include "werk/async/task_group.hpp"
#include "werk/http/client.hpp"

namespace werk::app::bench {

class Load {
 public:
  using OnEnd = std::function<void(const RunRecord& run)>;  // of each request

  // One server for all models, or as many as there are models, in their order.
  Load(async::Executor executor, async::Clock& clock, const Plan& plan, std::vector<Server> servers,
       OnEnd on_end);
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;

  // Fills everything of the record but its side, level, repeat and discarded, which it goes by.
  async::awaitable<void> run(RunRecord& record, std::uint64_t round, std::stop_token stop);
  // One request outside of any run.
  async::awaitable<void> ask_once(RequestRecord& record, std::uint64_t number,
                                  std::stop_token stop);
  // The page of a node; none from several servers, of which none has the whole to tell.
  async::awaitable<std::optional<boost::json::object>> observe_now(std::stop_token stop);

  // That the request of this number goes to.
  const Server& server(std::uint64_t number) const { return servers_[number % servers_.size()]; }
  // "werk 0.1.0", or what the Server header said; empty as long as nothing was told.
  const std::string& version() const { return version_; }

 private:
  struct Run;

  async::awaitable<void> call(Run& run);
  async::awaitable<void> come_by_rate(Run& run, async::TaskGroup& tasks, double rate);
  async::awaitable<void> ask_in(Run& run, std::size_t number, async::TimePoint due);
  async::awaitable<void> ask(Run& run, RequestRecord& record, std::uint64_t number,
                             async::TimePoint due);
  async::awaitable<Status> read_stream(Run& run, RequestRecord& record, http::Response& response,
                                       async::TimePoint due);
  async::awaitable<Status> read_refusal(RequestRecord& record, http::Response& response,
                                        std::stop_token stop);
  async::awaitable<void> watch(Run& run, std::stop_token stop);
  async::awaitable<void> look_last(Run& run);
  void note_pieces(Run& run, RequestRecord& record, std::uint32_t pieces, async::TimePoint due);

  async::Executor executor_;
  async::Clock& clock_;
  const Plan& plan_;
  std::vector<Server> servers_;
  OnEnd on_end_;
  http::Client client_;
  std::string version_;
  // By which the server's page calls the requests of this load, and of no other.
  std::string tag_;
  std::uint64_t asked_ = 0;
};

}  // namespace werk::app::bench
