// Channel: the fake's end of the line to the test. Events go out as JSON lines, in order and
// written before the fake goes on; commands come in as JSON lines on a thread of their own. Without
// a path it does nothing. Any thread.
#pragma once

#include <boost/json.hpp>
#include <functional>
#include <mutex>
#include <string>

namespace werk::fake {

class Channel {
 public:
  // Connects; a path that can't be connected to ends the process with 71.
  explicit Channel(const std::string& path);

  bool open() const { return file_ >= 0; }
  // Adds "event" and "at_us" (microseconds of the monotonic clock).
  void tell(std::string_view event, boost::json::object members = {});
  // Starts the thread that hands on commands. When the test's end closes, the process goes on.
  void listen(std::function<void(const boost::json::object&)> on_command);

 private:
  void read_commands(const std::function<void(const boost::json::object&)>& on_command);

  int file_ = -1;
  std::mutex mutex_;
};

}  // namespace werk::fake
