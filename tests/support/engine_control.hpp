// EngineControl: a test's side of the fake llama-server. It listens on a control socket, collects
// the events of all fakes that connect, hands them out on request and sends them commands. Owned by
// a test; a thread of its own reads, every call may come from any thread. Blocking calls have a
// watchdog and throw when it bites, which fails the test; a test that runs a loop uses take() and
// set_waker().
#pragma once

#include <sys/types.h>

#include <boost/json.hpp>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace werk::test {

struct EngineEvent {
  int engine = -1;          // which fake, counted from 0 in the order of their connecting
  std::string name;         // "spawned", "request", ...; "gone": its process or connection ended
  boost::json::object all;  // the members as the fake sent them

  std::uint64_t number(std::string_view member) const;
  std::string text(std::string_view member) const;
  // The id to be used in commands.
  std::uint64_t request() const { return number("request"); }
};

class EngineControl {
 public:
  using Matcher = std::function<bool(const EngineEvent&)>;

  // `settings`: what the fakes read at their start; see fake_engine/README.md.
  explicit EngineControl(boost::json::object settings = {});
  EngineControl(const EngineControl&) = delete;
  EngineControl& operator=(const EngineControl&) = delete;
  ~EngineControl();

  // Replaces the settings that later fakes read.
  void set_settings(const boost::json::object& settings);
  // A private folder of the test, removed at its end.
  const std::string& folder() const { return folder_; }
  // The fake's path; a link named "llama-server" in folder() with the settings beside it works too.
  static std::string program();
  std::string linked_program() const { return folder_ + "/llama-server"; }
  // FAKE_ENGINE_SCRIPT, FAKE_ENGINE_CONTROL and WERK_TEST_MARK, for a child's environment.
  std::vector<std::string> environment() const;

  // Takes the oldest event of that name that matches and was not taken before; waits for it.
  EngineEvent expect(std::string_view name, const Matcher& matcher = {});
  EngineEvent expect_from(int engine, std::string_view name);
  // The same without waiting.
  std::optional<EngineEvent> take(std::string_view name, const Matcher& matcher = {});
  // Taken or not, how many events of that name there were, and all of them.
  std::size_t count(std::string_view name) const;
  std::vector<EngineEvent> all(std::string_view name) const;
  // Called by the reading thread after each event; use it to wake a loop.
  void set_waker(std::function<void()> waker);

  void send(int engine, boost::json::object command);
  void ready(int engine) { send(engine, {{"do", "ready"}}); }
  void exit(int engine, int code, std::string_view text);
  void order(int engine, std::string_view what, std::uint64_t request);
  void release(int engine, std::uint64_t request) { order(engine, "release", request); }
  void finish(int engine, std::uint64_t request) { order(engine, "finish", request); }
  void step(int engine, std::uint64_t request, std::uint64_t count = 1);
  // How many generations were open at once, at most.
  std::uint64_t open_max(int engine);

  // Processes that carry this test's WERK_TEST_MARK and have not ended, the caller left out.
  std::vector<pid_t> living() const;
  // True once there is none; false if `limit` passes first. Waits on the processes, not on time.
  bool none_living_within(std::chrono::milliseconds limit) const;

 private:
  struct Line {
    int file = -1;
    std::string pending;
  };
  void read();
  void read_line(int engine);
  void add(EngineEvent event);
  std::optional<EngineEvent> take_locked(std::string_view name, const Matcher& matcher);

  std::string folder_;
  std::string mark_;
  int listener_ = -1;
  int stop_ = -1;  // an eventfd
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Line> lines_;
  std::deque<EngineEvent> waiting_;
  std::vector<EngineEvent> history_;
  std::function<void()> waker_;
  std::thread reader_;
};

}  // namespace werk::test
