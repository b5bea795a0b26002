#include "tests/sim/residency_explore.hpp"

#include <algorithm>
#include <random>
#include <unordered_map>

namespace werk::test {
namespace {

constexpr std::size_t kNowhere = static_cast<std::size_t>(-1);

struct Edge {
  WorldEvent event;
  std::size_t to = 0;
};

struct Node {
  std::vector<Edge> edges;
  std::vector<bool> waiting;  // per caller, then per key: an unload that isn't done
  std::size_t parent = kNowhere;
  WorldEvent by{};
};

using Graph = std::vector<Node>;

std::string way_to(const Graph& graph, std::size_t node) {
  std::vector<std::string> steps;
  for (std::size_t at = node; graph[at].parent != kNowhere; at = graph[at].parent)
    steps.push_back(graph[at].by.text());
  std::string text;
  for (auto it = steps.rbegin(); it != steps.rend(); ++it) text += "\n  " + *it;
  return text;
}

// Tarjan's strongly connected components over the nodes where `inside` holds, without recursion.
class Components {
 public:
  Components(const Graph& graph, const std::vector<bool>& inside, std::size_t caller)
      : graph_(graph),
        inside_(inside),
        caller_(caller),
        index_(graph.size(), kNowhere),
        low_(graph.size(), 0),
        on_stack_(graph.size(), false) {}

  std::vector<std::vector<std::size_t>> find() {
    for (std::size_t node = 0; node < graph_.size(); ++node) {
      if (inside_[node] && index_[node] == kNowhere) visit(node);
    }
    return std::move(found_);
  }
  bool follows(const Edge& edge) const {
    const bool own = edge.event.caller == caller_ && (edge.event.kind == WorldEvent::Kind::cancel ||
                                                      edge.event.kind == WorldEvent::Kind::arrive);
    return inside_[edge.to] && !own;
  }

 private:
  void open(std::size_t node) {
    index_[node] = low_[node] = next_++;
    stack_.push_back(node);
    on_stack_[node] = true;
    work_.emplace_back(node, 0);
  }
  void visit(std::size_t root) {
    open(root);
    while (!work_.empty()) {
      const std::size_t node = work_.back().first;
      const std::size_t at = work_.back().second++;
      if (at < graph_[node].edges.size()) {
        const Edge& edge = graph_[node].edges[at];
        if (!follows(edge)) continue;
        if (index_[edge.to] == kNowhere) {
          open(edge.to);
        } else if (on_stack_[edge.to]) {
          low_[node] = std::min(low_[node], index_[edge.to]);
        }
        continue;
      }
      work_.pop_back();
      if (!work_.empty()) low_[work_.back().first] = std::min(low_[work_.back().first], low_[node]);
      if (low_[node] == index_[node]) close(node);
    }
  }
  void close(std::size_t root) {
    std::vector<std::size_t> component;
    std::size_t node = kNowhere;
    do {
      node = stack_.back();
      stack_.pop_back();
      on_stack_[node] = false;
      component.push_back(node);
    } while (node != root);
    found_.push_back(std::move(component));
  }

  const Graph& graph_;
  const std::vector<bool>& inside_;
  std::size_t caller_;
  std::vector<std::size_t> index_;
  std::vector<std::size_t> low_;
  std::vector<bool> on_stack_;
  std::vector<std::size_t> stack_;
  std::vector<std::pair<std::size_t, std::size_t>> work_;
  std::vector<std::vector<std::size_t>> found_;
  std::size_t next_ = 0;
};

std::vector<WorldEvent> fair_events(const Node& node) {
  std::vector<WorldEvent> events;
  for (const Edge& edge : node.edges) {
    if (edge.event.fair) events.push_back(edge.event);
  }
  return events;
}

// True if a fair scheduler can stay in the component for ever: every fair event that is always
// possible is also taken.
bool can_stay(const Graph& graph, const std::vector<std::size_t>& component,
              const Components& components) {
  std::vector<bool> member(graph.size(), false);
  for (const std::size_t node : component) member[node] = true;
  std::vector<WorldEvent> always = fair_events(graph[component.front()]);
  std::vector<WorldEvent> taken;
  bool has_edge = false;
  for (const std::size_t node : component) {
    const std::vector<WorldEvent> here = fair_events(graph[node]);
    std::erase_if(always, [&](const WorldEvent& event) {
      return std::ranges::find(here, event) == here.end();
    });
    for (const Edge& edge : graph[node].edges) {
      if (!components.follows(edge) || !member[edge.to]) continue;
      has_edge = true;
      if (edge.event.fair) taken.push_back(edge.event);
    }
  }
  if (!has_edge) return fair_events(graph[component.front()]).empty();  // a dead end
  return std::ranges::all_of(always, [&](const WorldEvent& event) {
    return std::ranges::find(taken, event) != taken.end();
  });
}

std::optional<std::string> find_starvation(const Graph& graph, const WorldShape& shape) {
  for (std::size_t caller = 0; caller < shape.callers + shape.keys; ++caller) {
    std::vector<bool> inside(graph.size());
    for (std::size_t node = 0; node < graph.size(); ++node)
      inside[node] = graph[node].waiting[caller];
    Components components(graph, inside, caller);
    for (const auto& component : components.find()) {
      if (!can_stay(graph, component, components)) continue;
      const bool is_caller = caller < shape.callers;
      const std::string who = is_caller
                                  ? "caller " + std::to_string(caller)
                                  : "an unload of key " + std::to_string(caller - shape.callers);
      return who + " can wait for ever, in a cycle of " + std::to_string(component.size()) +
             " states, after:" + way_to(graph, component.front());
    }
  }
  return std::nullopt;
}

}  // namespace

Exploration explore(const WorldShape& shape) {
  Exploration result;
  Graph graph;
  std::vector<ResidencyWorld> worlds;
  std::unordered_map<std::string, std::size_t> known;
  const auto add = [&](ResidencyWorld world, std::size_t parent, const WorldEvent& by) {
    const auto [place, is_new] = known.emplace(world.fingerprint(), graph.size());
    if (is_new) {
      Node node;
      for (std::size_t c = 0; c < shape.callers; ++c) node.waiting.push_back(world.waits(c));
      for (runtime::KeyId k = 0; k < shape.keys; ++k) node.waiting.push_back(world.unloads(k));
      node.parent = parent;
      node.by = by;
      graph.push_back(std::move(node));
      worlds.push_back(std::move(world));
    }
    return place->second;
  };
  add(ResidencyWorld(shape), kNowhere, {});
  for (std::size_t at = 0; at < graph.size(); ++at) {
    for (const WorldEvent& event : worlds[at].possible()) {
      ResidencyWorld next = worlds[at];
      ++result.steps;
      if (auto broken = next.happen(event)) {
        result.states = graph.size();
        result.broken = *broken + ", after:" + way_to(graph, at) + "\n  " + event.text();
        return result;
      }
      const std::size_t to = add(std::move(next), at, event);
      graph[at].edges.push_back({event, to});
    }
  }
  result.states = graph.size();
  result.broken = find_starvation(graph, shape);
  return result;
}

Exploration walk(const WorldShape& shape, std::uint64_t seed, std::size_t steps) {
  Exploration result;
  std::mt19937_64 random(seed);
  ResidencyWorld world(shape);
  for (; result.steps < steps; ++result.steps) {
    std::vector<WorldEvent> events = world.possible();
    // A shutdown ends the interesting part of a walk: rare, and then a new world.
    const bool allow_shutdown = random() % 5000 == 0;
    if (!allow_shutdown)
      std::erase_if(events, [](const auto& e) { return e.kind == WorldEvent::Kind::shutdown; });
    if (events.empty()) {
      world = ResidencyWorld(shape);
      continue;
    }
    const WorldEvent event = events[random() % events.size()];
    if (auto broken = world.happen(event)) {
      result.broken = *broken + " at step " + std::to_string(result.steps) + " (" + event.text() +
                      "), seed " + std::to_string(seed);
      return result;
    }
    if (event.kind == WorldEvent::Kind::stop_leased) world = ResidencyWorld(shape);
  }
  return result;
}

}  // namespace werk::test
