#include "tests/e2e/test_node.hpp"

#include <algorithm>
#include <chrono>
#include <latch>
#include <set>
#include <stdexcept>
#include <thread>

namespace werk::test {

namespace json = boost::json;

namespace {

constexpr std::chrono::seconds kWatchdog{60};

bool is_generation(const EngineEvent& event) {
  const json::value* generation = event.all.if_contains("generation");
  return generation != nullptr && generation->is_bool() && generation->get_bool();
}

}  // namespace

TestNode::TestNode(Settings settings)
    : engines_(std::move(settings.engine)), environment_(std::move(settings.environment)) {
  install_tiny_models(home_.path(), settings.models);
  start_again(std::move(settings.arguments));
}

NodeProcess::Settings TestNode::process_settings(std::vector<std::string> arguments) const {
  std::vector<std::string> environment = engines_.environment();
  environment.push_back("WERK_LLAMA_SERVER=" + EngineControl::program());
  environment.insert(environment.end(), environment_.begin(), environment_.end());
  return {home_.path(), std::move(arguments), std::move(environment)};
}

void TestNode::start_again(std::vector<std::string> arguments) {
  process_.reset();
  process_ = std::make_unique<NodeProcess>(process_settings(std::move(arguments)));
}

HttpCall TestNode::chat(std::string_view model, std::string_view more) {
  return test::chat(port(), chat_body(model, more));
}

HttpCall TestNode::get(std::string_view target, const std::vector<std::string>& headers) {
  return HttpCall(port(), "GET", target, {}, headers);
}

EngineEvent TestNode::generation(const EngineControl::Matcher& matcher) {
  return engines_.expect("request", [&matcher](const EngineEvent& event) {
    return is_generation(event) && (!matcher || matcher(event));
  });
}

std::size_t TestNode::generations() {
  // An engine's events come in order, so its report stands behind all that it has told before.
  std::set<int> living;
  for (const EngineEvent& event : engines_.all("spawned")) living.insert(event.engine);
  for (const EngineEvent& event : engines_.all("gone")) living.erase(event.engine);
  for (const int engine : living) engines_.open_max(engine);
  return static_cast<std::size_t>(std::ranges::count_if(engines_.all("request"), is_generation));
}

std::size_t TestNode::spawned() {
  // Each engine that the node names has told of itself, or is about to.
  await_observability([this](const json::object& page) {
    const std::vector<EngineEvent> known = engines_.all("spawned");
    return std::ranges::all_of(
        page.at("runtimes").as_array(), [&known](const json::value& runtime) {
          const json::value& pid = runtime.at("pid");
          return !pid.is_number() || std::ranges::any_of(known, [&pid](const EngineEvent& event) {
            return event.number("pid") == pid.to_number<std::uint64_t>();
          });
        });
  });
  return engines_.count("spawned");
}

void TestNode::reply(const EngineEvent& generation, json::object reply) {
  reply["do"] = "reply";
  reply["request"] = generation.request();
  engines_.send(generation.engine, std::move(reply));
}

HttpCall TestNode::scripted(std::string_view model, std::string_view more, json::object members) {
  HttpCall call = chat(model, more);
  reply(generation(), std::move(members));
  return call;
}

json::object TestNode::observability() {
  return json::parse(get("/werk/v1/observability").whole_body()).as_object();
}

json::object TestNode::await_observability(const PageTest& wanted) {
  const auto limit = std::chrono::steady_clock::now() + kWatchdog;
  while (true) {
    json::object page = observability();
    if (wanted(page)) return page;
    if (std::chrono::steady_clock::now() > limit) {
      throw std::runtime_error("the node never came to that state: " + json::serialize(page));
    }
  }
}

void TestNode::await_waiting(std::uint64_t calls) {
  await_observability(
      [calls](const json::object& page) { return number_in(page, "calls", "waiting") == calls; });
}

void TestNode::await_state(std::string_view model, std::string_view state) {
  await_observability([&](const json::object& page) {
    const json::object runtime = runtime_of(page, model);
    return !runtime.empty() && runtime.at("state").as_string() == state;
  });
}

void TestNode::await_no_runtimes() {
  await_observability(
      [](const json::object& page) { return page.at("runtimes").as_array().empty(); });
}

void TestNode::kill_engine(int engine) {
  engines_.send(engine, {{"do", "kill_self"}});
  engines_.expect_from(engine, "gone");
  await_no_runtimes();
}

std::uint64_t number_in(const json::object& page, std::string_view object,
                        std::string_view member) {
  const json::value* part = page.if_contains(object);
  if (part == nullptr || !part->is_object()) return 0;
  const json::value* value = part->get_object().if_contains(member);
  return value != nullptr && value->is_number() ? value->to_number<std::uint64_t>() : 0;
}

json::object runtime_of(const json::object& page, std::string_view model) {
  for (const json::value& runtime : page.at("runtimes").as_array()) {
    if (runtime.at("model").as_string() == model) return runtime.as_object();
  }
  return {};
}

std::vector<int> run_callers(std::size_t count, const std::function<int(std::size_t)>& caller) {
  std::vector<int> results(count, -1);
  std::latch start(static_cast<std::ptrdiff_t>(count));
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < count; ++i) {
      threads.emplace_back([&, i] {
        start.arrive_and_wait();
        try {
          results[i] = caller(i);
        } catch (const std::exception&) {
          // It stays -1.
        }
      });
    }
  }
  return results;
}

}  // namespace werk::test
