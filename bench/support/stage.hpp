// The ways a request can take to one mock engine: direct, through nginx, and through a node that
// started it, in either dialect. Direct and nginx ask for the stream that the node asks for, so
// that the engine sends the same bytes to all. Owned by one benchmark. Single thread; failures
// throw.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bench/support/load.hpp"
#include "bench/support/mock_control.hpp"
#include "bench/support/programs.hpp"
#include "bench/support/stats.hpp"

namespace werk::bench {

// The model of a stage's mock; `folder / "home"` must hold it.
inline constexpr std::string_view kStageModel = "m0";

// A node, its mock, and nginx before the same mock.
struct Stage {
  Stage(const Setting& setting, const Folder& folder, const std::string& name,
        Nginx::AccessLog access_log);
  LoadPlan to_engine(const Endpoint& endpoint, const MockOrder& order,
                     std::size_t connections) const;
  LoadPlan to_node(Dialect dialect, Audience audience, const MockOrder& order,
                   std::size_t connections) const;

  MockEvents events;
  Node node;
  Endpoint direct;
  EngineHandle engine;
  std::unique_ptr<Nginx> nginx;
};

// How long each side is measured in one round: in several turns, since where the scheduler puts the
// processes decides a small latency more than anything that stands between them.
struct Slice {
  std::chrono::milliseconds turn;
  std::size_t turns = 1;
};

struct WaysPlan {
  Audience audience = Audience::node_whole;  // of the node
  MockOrder order;
  std::size_t connections = 1;
  Slice slice;
  std::vector<Dialect> dialects = {Dialect::openai};
};

// All ways side by side, each with connections that stay.
class Ways {
 public:
  Ways(const Stage& stage, const WaysPlan& plan);

  // Calls `end` behind each round with the results at hand.
  void measure(std::size_t rounds, const std::function<void()>& end);

  LoadResult direct;
  LoadResult nginx;
  std::vector<LoadResult> node;  // in the order of the plan's dialects

 private:
  Load direct_;
  Load nginx_;
  std::vector<std::unique_ptr<Load>> node_;
  Slice slice_;
};

// How many of something a second on each way.
struct Rates {
  struct OfNode {
    double median = 0;
    Summary against_nginx;
  };
  double direct = 0;
  double nginx = 0;
  std::vector<OfNode> node;  // in the order of the plan's dialects
};
Rates measure_rates(Ways& ways, std::size_t rounds, std::uint64_t LoadResult::*counted);

}  // namespace werk::bench
