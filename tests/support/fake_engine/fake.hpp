// Fake: the state of one fake llama-server and its routes. Every connection has a thread; one mutex
// guards what they share. Commands of the test arrive on the channel's thread and wake the calls
// that wait for them; a waiting call also notices at once that its client has gone.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <mutex>
#include <set>

#include "tests/support/fake_engine/channel.hpp"
#include "tests/support/fake_engine/command_line.hpp"
#include "tests/support/fake_engine/wire.hpp"

namespace werk::fake {

// One generation, from the arrival of its request on. Guarded by the Fake's mutex, except id and
// wake.
struct Call {
  std::uint64_t id = 0;
  int wake = -1;  // an eventfd, written after every change below
  std::uint64_t releases = 0;
  std::uint64_t steps = 0;
  bool finished = false;  // nothing holds it any more
  bool dropped = false;   // the connection is to be closed now
  bool open = true;       // its end has not been sent
  bool in_barrier = false;
  bool through_barrier = false;
  json::object orders;    // merged over the planned reply
};

class Fake {
 public:
  Fake(CommandLine line, Settings settings, Channel& channel);

  // Accepts connections for ever.
  [[noreturn]] void serve(const Listener& listener);
  void become_ready();
  void wait_until_ready();
  // Until it has ended; from then on calls fail and the health says so.
  void attend_core(pid_t core);
  bool core_is_dead();
  void obey(const json::object& command);
  // SIGTERM or SIGINT came.
  void terminate();
  // Tells "exiting", prints the text on standard error and ends the process.
  [[noreturn]] void end(int code, const std::string& text);

  // For generations.
  Settings settings();
  Sizes sizes() { return sizes_of(line_, settings()); }
  std::string model_name();
  Channel& channel() { return channel_; }
  Reply planned_reply();
  json::object orders_of(Call& call);
  enum class Waited : std::uint8_t { fulfilled, gone, dropped, core_died };
  // Until the condition, asked under the mutex, holds. Without a connection only that ends it.
  Waited wait(Call& call, const Connection* connection, const std::function<bool()>& condition);
  Waited wait_at_barrier(Call& call, const Connection& connection);
  // The call no longer counts as open: before its last bytes, whose reader may send the next.
  void leave(Call& call);

 private:
  enum class Then : std::uint8_t { keep, close };

  void attend(int file);
  Then answer(Connection& connection, const Request& request, std::uint64_t id);
  Then answer_as_vllm(Connection& connection, const Request& request, const Settings& now);
  Then answer_generation(Connection& connection, const Request& request, std::uint64_t id);
  Then send_json(Connection& connection, unsigned status, const std::string& body,
                 const Request& request);
  Then send_error(Connection& connection, unsigned status, std::string_view type,
                  std::string_view message, const Request& request);
  bool has_key(const Request& request) const;
  void tell_request(const Request& request, std::uint64_t id, std::uint64_t open);
  void order(const json::object& command);
  void report();
  std::uint64_t open_locked() const;
  void close_idle();
  std::string props();
  std::string slots();
  std::string models();

  CommandLine line_;
  Channel& channel_;
  std::mutex mutex_;
  Settings settings_;
  bool ready_ = false;
  bool core_dead_ = false;
  std::condition_variable became_ready_;
  std::string address_;
  std::list<Call*> calls_;
  std::set<int> idle_;
  std::uint64_t requests_ = 0;
  std::uint64_t generations_ = 0;
  std::uint64_t open_max_ = 0;
};

}  // namespace werk::fake
