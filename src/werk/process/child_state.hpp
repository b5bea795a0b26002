// ChildState: one process from its start to its reaping, behind Child and Children. It waits for
// the exit on a process descriptor and reads the output pipes, all by readiness, on the loop
// thread. It is shared by the handle, by Children and by the handlers that wait in the loop.
#pragma once

#include <array>
#include <boost/asio/posix/stream_descriptor.hpp>

#include "werk/process/child.hpp"
#include "werk/process/linux.hpp"
#include "werk/process/linux_group.hpp"
#include "werk/process/output.hpp"

namespace werk::process {

class ChildState final : public std::enable_shared_from_this<ChildState> {
 public:
  ChildState(async::Executor executor, async::Clock& clock, Command command);

  const Command& command() const { return command_; }
  pid_t pid() const { return pid_; }
  async::Event& exited() { return exited_; }
  const std::optional<ExitStatus>& status() const { return status_; }
  const OutputTail& tail() const { return tail_; }

  // The process runs: takes its descriptor and the reading ends of its pipes. `on_reaped` is called
  // once, after the reaping.
  void watch(os::Launched launched, Descriptor out, Descriptor err,
             std::function<void()> on_reaped);
  void note_shared_memory();
  void signal(int number);
  void begin_stop(Grace grace);
  // The handle has gone: kills the group and forgets the callbacks.
  void abandon();
  // Kills, waits for the end on the spot and reaps. For ~Children only.
  void end_now();

 private:
  struct Source {
    Source(const async::Executor& executor, Stream from) : file(executor), stream(from) {}
    boost::asio::posix::stream_descriptor file;
    Stream stream;
    LineSplitter lines;
  };

  void wait_for_exit();
  void wait_for_output(Source& source);
  enum class More : std::uint8_t { yes, no };
  // Reads what is there, at most `bytes_max`; no: the other side is closed.
  More read_some(Source& source, std::size_t bytes_max);
  void take(Source& source, std::string_view bytes);
  void close(Source& source);
  bool is_guarded() const { return command_.guard == Guard::group; }
  void kill_group();
  // The leader has ended: ends the rest of the group, then concludes.
  void finish(ExitStatus status);
  void wait_for_group(ExitStatus status);
  void conclude(ExitStatus status);

  async::Clock& clock_;
  Command command_;
  pid_t pid_ = -1;
  os::Guardian guardian_;
  os::SharedFiles shared_files_;
  boost::asio::posix::stream_descriptor process_;
  std::array<Source, 2> sources_;
  boost::asio::posix::stream_descriptor member_;  // of the group, once the leader has ended
  OutputTail tail_;
  async::Event exited_;
  std::optional<ExitStatus> status_;
  std::function<void()> on_reaped_;
  std::optional<async::TimePoint> kill_due_;
  std::unique_ptr<async::Timer> kill_timer_;
  bool finishing_ = false;  // the leader has ended
  std::unique_ptr<async::Timer> group_timer_;
};

}  // namespace werk::process
