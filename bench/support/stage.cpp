#include "bench/support/stage.hpp"

#include <algorithm>
#include <stdexcept>

namespace werk::bench {
namespace {

void add(LoadResult& sum, const LoadResult& part) {
  if (part.failures > 0) throw std::runtime_error("an answer failed: " + part.first_failure);
  sum.seconds += part.seconds;
  sum.answers += part.answers;
  sum.events += part.events;
  sum.whole_us.insert(sum.whole_us.end(), part.whole_us.begin(), part.whole_us.end());
  sum.first_us.insert(sum.first_us.end(), part.first_us.begin(), part.first_us.end());
}

}  // namespace

Stage::Stage(const Setting& setting, const Folder& folder, const std::string& name,
             Nginx::AccessLog access_log)
    : events(folder / (name + ".events")),
      node(setting, folder / "home",
           {"--backend", "llama-cpu", "--parallel", "256", "--model", std::string(kStageModel),
            "--log-level", access_log == Nginx::AccessLog::on ? "info" : "warn"},
           {"WERK_LLAMA_SERVER=" + setting.mock, "BENCH_MOCK_TCP=1", events.variable()},
           folder / (name + ".log")) {
  direct.port = static_cast<std::uint16_t>(events.expect("spawned").number);
  events.expect("ready");
  engine = node.engine();
  nginx = std::make_unique<Nginx>(folder, name, engine.socket, access_log);
}

LoadPlan Stage::to_engine(const Endpoint& endpoint, const MockOrder& order,
                          std::size_t connections) const {
  LoadPlan plan;
  plan.endpoint = endpoint;
  plan.connections = connections;
  plan.expected_hash = mock_text_hash(order.tokens);
  plan.requests = {
      mock_request(Dialect::openai, engine.alias, Audience::engine, order, engine.key)};
  return plan;
}

LoadPlan Stage::to_node(Dialect dialect, Audience audience, const MockOrder& order,
                        std::size_t connections) const {
  LoadPlan plan;
  plan.endpoint = node.endpoint();
  plan.dialect = dialect;
  plan.connections = connections;
  plan.expected_hash = mock_text_hash(order.tokens);
  plan.requests = {mock_request(dialect, kStageModel, audience, order)};
  return plan;
}

Ways::Ways(const Stage& stage, const WaysPlan& plan)
    : node(plan.dialects.size()),
      direct_(stage.to_engine(stage.direct, plan.order, plan.connections)),
      nginx_(stage.to_engine(stage.nginx->endpoint(), plan.order, plan.connections)),
      slice_(plan.slice) {
  for (const Dialect dialect : plan.dialects) {
    node_.push_back(std::make_unique<Load>(
        stage.to_node(dialect, plan.audience, plan.order, plan.connections)));
  }
}

void Ways::measure(std::size_t rounds, const std::function<void()>& end) {
  const auto side = [this](LoadResult& sum, Load& load) {
    return [this, &sum, &load] { add(sum, load.run_for(slice_.turn)); };
  };
  std::vector<std::function<void()>> sides{side(direct, direct_), side(nginx, nginx_)};
  for (std::size_t i = 0; i < node.size(); ++i) sides.emplace_back(side(node[i], *node_[i]));
  for (std::size_t round = 0; round <= rounds; ++round) {
    direct = nginx = {};
    std::ranges::fill(node, LoadResult{});
    for (std::size_t turn = 0; turn < slice_.turns; ++turn) {
      for (const auto& measure_side : sides) measure_side();
      std::ranges::reverse(sides);
    }
    if (round > 0) end();
  }
}

Rates measure_rates(Ways& ways, std::size_t rounds, std::uint64_t LoadResult::*counted) {
  const auto rate = [counted](const LoadResult& result) {
    return static_cast<double>(result.*counted) / result.seconds;
  };
  std::vector<double> direct;
  std::vector<double> nginx;
  std::vector<std::vector<double>> node(ways.node.size());
  std::vector<std::vector<Round>> ratios(ways.node.size());
  ways.measure(rounds, [&] {
    direct.push_back(rate(ways.direct));
    nginx.push_back(rate(ways.nginx));
    for (std::size_t i = 0; i < node.size(); ++i) {
      node[i].push_back(rate(ways.node[i]));
      ratios[i].push_back({node[i].back() / nginx.back(), 1 / direct.back()});
    }
  });
  Rates rates{median(direct), median(nginx), {}};
  for (std::size_t i = 0; i < node.size(); ++i) {
    rates.node.push_back({median(node[i]), summarize(ratios[i])});
  }
  return rates;
}

}  // namespace werk::bench
