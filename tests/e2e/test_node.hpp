// TestNode: the real node over fake engines in a home of its own, with what most tests ask of it:
// calls, the generations that engines have read, and the node's own view of itself. Waits are on
// events with a watchdog that throws, which fails the test. Owned by one test or by a suite whose
// tests share it; blocking.
#pragma once

#include <boost/json.hpp>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/engine_control.hpp"
#include "tests/support/http_call.hpp"
#include "tests/support/node_process.hpp"
#include "tests/support/temporary_folder.hpp"

namespace werk::test {

class TestNode {
 public:
  struct Settings {
    std::vector<TestModel> models = {{"a"}};
    boost::json::object engine = {};          // what the fakes read at their start
    std::vector<std::string> arguments = {};  // of `werk serve`
    std::vector<std::string> environment = {};
  };
  using PageTest = std::function<bool(const boost::json::object& page)>;

  explicit TestNode(Settings settings);

  EngineControl& engines() { return engines_; }
  NodeProcess& process() { return *process_; }
  std::uint16_t port() { return process_->port(); }
  const std::filesystem::path& home() const { return home_.path(); }
  // For a node on this home or, with the same engines, on another.
  NodeProcess::Settings process_settings(std::vector<std::string> arguments) const;
  // A new node on the same home in place of the one that has ended.
  void start_again(std::vector<std::string> arguments);

  HttpCall chat(std::string_view model, std::string_view more = {});
  HttpCall get(std::string_view target, const std::vector<std::string>& headers = {});

  // The next generation that an engine has read whole and no test has taken yet.
  EngineEvent generation(const EngineControl::Matcher& matcher = {});
  // How many generations all engines have read by now, taken or not; living engines are asked.
  std::size_t generations();
  // How many engines were ever spawned, after the node was asked whom it has.
  std::size_t spawned();
  // Sends a call and has the engine answer it with this reply. For engines that hold every call.
  HttpCall scripted(std::string_view model, std::string_view more, boost::json::object reply);
  void reply(const EngineEvent& generation, boost::json::object reply);

  boost::json::object observability();
  // Asks for the page back to back until it is as wanted.
  boost::json::object await_observability(const PageTest& wanted);
  void await_waiting(std::uint64_t calls);
  void await_state(std::string_view model, std::string_view state);
  void await_no_runtimes();
  // Has the engine killed, and waits until the node knows.
  void kill_engine(int engine);

 private:
  TemporaryFolder home_;
  EngineControl engines_;
  std::vector<std::string> environment_;
  std::unique_ptr<NodeProcess> process_;
};

// A number within a page: {"calls", "waiting"}. 0 where it isn't.
std::uint64_t number_in(const boost::json::object& page, std::string_view object,
                        std::string_view member);
// The model's entry among the runtimes; empty if it has none.
boost::json::object runtime_of(const boost::json::object& page, std::string_view model);

// Lets that many callers go at once, each on a thread of its own, and returns what they returned;
// -1 for one that failed with an exception.
std::vector<int> run_callers(std::size_t count, const std::function<int(std::size_t)>& caller);

}  // namespace werk::test
