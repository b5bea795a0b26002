#include "werk/process/child_state.hpp"

#include <fmt/ranges.h>

#include <csignal>

#include "werk/base/assert.hpp"
#include "werk/base/log.hpp"

namespace werk::process {

namespace asio = boost::asio;

namespace {

constexpr std::size_t kReadBytes = 16 * 1024;
// One turn of the loop reads this much of one child, so that a flood delays others little.
constexpr std::size_t kTurnBytesMax = 128 * 1024;
// A pipe holds 64 KiB. More than this after the exit comes from somebody who left the group.
constexpr std::size_t kLastBytesMax = 1024 * 1024;
// How long members of a group may take to go after SIGKILL: several gigabytes are given back.
constexpr std::chrono::seconds kGroupEndLimit{10};

}  // namespace

ChildState::ChildState(async::Executor executor, async::Clock& clock, Command command)
    : clock_(clock),
      command_(std::move(command)),
      process_(executor),
      sources_{Source(executor, Stream::out), Source(executor, Stream::err)},
      member_(executor),
      tail_(Child::kTailBytesMax),
      exited_(executor) {}

void ChildState::watch(os::Launched launched, Descriptor out, Descriptor err,
                       std::function<void()> on_reaped) {
  pid_ = launched.pid;
  guardian_ = std::move(launched.guardian);
  on_reaped_ = std::move(on_reaped);
  process_.assign(launched.process.release());
  if (out) sources_[0].file.assign(out.release());
  if (err) sources_[1].file.assign(err.release());
  wait_for_exit();
  for (Source& source : sources_) {
    if (source.file.is_open()) wait_for_output(source);
  }
}

void ChildState::wait_for_exit() {
  process_.async_wait(asio::posix::stream_descriptor::wait_read,
                      [self = shared_from_this()](boost::system::error_code error) {
                        if (error || self->finishing_) return;
                        const auto status = os::look(self->process_.native_handle());
                        if (status) {
                          self->finish(*status);
                        } else {
                          self->wait_for_exit();
                        }
                      });
}

// Readiness first and then a plain read, so that no byte is ever on its way in a queued handler
// when the exit is handled.
void ChildState::wait_for_output(Source& source) {
  source.file.async_wait(asio::posix::stream_descriptor::wait_read,
                         [self = shared_from_this(), &source](boost::system::error_code error) {
                           if (error || !source.file.is_open()) return;
                           if (self->read_some(source, kTurnBytesMax) == More::yes) {
                             self->wait_for_output(source);
                           } else {
                             self->close(source);
                           }
                         });
}

ChildState::More ChildState::read_some(Source& source, std::size_t bytes_max) {
  std::array<char, kReadBytes> buffer;
  std::size_t bytes_read = 0;
  while (bytes_read < bytes_max) {
    const ssize_t count = ::read(source.file.native_handle(), buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno == EAGAIN || errno == EWOULDBLOCK ? More::yes : More::no;
    if (count == 0) return More::no;
    const auto bytes = static_cast<std::size_t>(count);
    bytes_read += bytes;
    take(source, std::string_view(buffer.data(), bytes));
  }
  return More::yes;
}

void ChildState::take(Source& source, std::string_view bytes) {
  tail_.append(bytes);
  if (command_.on_output) command_.on_output(source.stream, bytes);
  if (command_.on_line) source.lines.append(bytes, command_.on_line);
}

void ChildState::close(Source& source) {
  source.file.close();
  if (command_.on_line) source.lines.finish(command_.on_line);
}

void ChildState::note_shared_memory() {
  if (is_guarded() && pid_ > 0 && !status_) shared_files_.note(pid_);
}

void ChildState::signal(int number) {
  if (pid_ > 0 && !status_) ::kill(-pid_, number);
}

void ChildState::begin_stop(Grace grace) {
  if (status_ || finishing_) return;
  const async::TimePoint due = clock_.now() + grace.term;
  if (kill_due_ && *kill_due_ <= due) return;
  const bool first = !kill_due_;
  kill_due_ = due;
  if (grace.term <= async::Duration::zero()) {
    kill_timer_.reset();
    kill_group();
    return;
  }
  kill_timer_ = clock_.call_at(due, [this] { kill_group(); });
  if (first) note_shared_memory();
  if (first) signal(SIGTERM);
}

void ChildState::abandon() {
  command_.on_output = nullptr;
  command_.on_line = nullptr;
  kill_group();
}

void ChildState::kill_group() {
  if (!is_guarded()) return signal(SIGKILL);
  if (pid_ > 0 && !status_) os::kill_all_but_trackers(pid_);
}

void ChildState::end_now() {
  on_reaped_ = nullptr;
  note_shared_memory();
  abandon();
  if (status_) return;
  finishing_ = true;
  kill_timer_.reset();
  const ExitStatus status = os::wait_for_end(process_.native_handle());
  if (is_guarded()) {
    os::wait_for_group_end(pid_, os::kTrackerGrace);
    signal(SIGKILL);
    os::wait_for_group_end(pid_, kGroupEndLimit);
  }
  conclude(status);
}

// The process has ended and isn't reaped yet, so its number and its group's can't belong to others:
// the moment to end its helpers.
void ChildState::finish(ExitStatus status) {
  WERK_ASSERT(!finishing_);
  finishing_ = true;
  note_shared_memory();
  kill_group();
  if (!is_guarded()) return conclude(status);
  kill_timer_ = clock_.call_at(clock_.now() + os::kTrackerGrace, [this] { signal(SIGKILL); });
  group_timer_ = clock_.call_at(clock_.now() + kGroupEndLimit, [this, status] {
    log::error("of group {} the processes {} are still there {} s after SIGKILL", pid_,
               fmt::join(os::living_members(pid_), ", "), kGroupEndLimit.count());
    conclude(status);
  });
  wait_for_group(status);
}

// For one member after the other, by its own descriptor.
void ChildState::wait_for_group(ExitStatus status) {
  Descriptor left = os::first_living_member(pid_);
  if (!left) return conclude(status);
  member_.assign(left.release());
  member_.async_wait(asio::posix::stream_descriptor::wait_read,
                     [self = shared_from_this(), status](boost::system::error_code error) {
                       if (error || self->status_) return;
                       self->member_.close();
                       self->wait_for_group(status);
                     });
}

void ChildState::conclude(ExitStatus status) {
  WERK_ASSERT(!status_);
  for (Source& source : sources_) {
    if (!source.file.is_open()) continue;
    read_some(source, kLastBytesMax);
    close(source);
  }
  if (is_guarded()) shared_files_.remove_left();
  os::dismiss(guardian_);
  os::reap(process_.native_handle());
  process_.close();
  kill_timer_.reset();
  group_timer_.reset();
  if (member_.is_open()) member_.close();
  status_ = status;
  exited_.set();
  log::debug("process {} ended: {}", pid_, status.text());
  if (on_reaped_) {
    const std::function<void()> reaped = std::move(on_reaped_);
    reaped();
  }
}

}  // namespace werk::process
