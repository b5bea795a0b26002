// Children: every process the node starts, each in a process group of its own. A Child is the
// handle of one; its owner stops it, and destroying the handle kills the group at once, while
// Children, which outlives the handles, keeps the process until it is reaped. Output is drained all
// the time. A child dies with this process (parent-death signal), its helpers die with the child
// (the group is killed before the child is reaped); helpers that outlive a leader whom the kernel
// killed need a guardian besides (Guard). Everything here runs on the loop thread, which is the
// main thread: the kernel ties the parent-death signal to the thread that forked.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "werk/async/clock.hpp"
#include "werk/async/event.hpp"
#include "werk/base/result.hpp"

namespace werk::process {

enum class Stream : std::uint8_t { out, err };

// One pipe keeps the order in which the child wrote to both; two tell them apart.
enum class Pipes : std::uint8_t { one, two };

// What ends when this process is killed: the child itself, and what of its helpers follows it; or,
// by a guardian process, every member of its group. With a guardian the end of the child is also
// told only once no member is left, and files that they left in shared memory are removed.
enum class Guard : std::uint8_t { leader, group };

struct Command {
  std::string program;  // a path, or a name to be searched in PATH of `environment`, else our own
  std::vector<std::string> arguments;    // without the program's own name
  std::vector<std::string> environment;  // complete, "NAME=value"
  std::string directory = {};            // working folder; empty: ours
  // {our number, the child's number}: further files for the child. Standard input is /dev/null and
  // standard output and error are drained by Child unless 0, 1 or 2 stands here.
  std::vector<std::pair<int, int>> descriptors = {};
  Pipes pipes = Pipes::one;  // with one, everything counts as Stream::err
  Guard guard = Guard::leader;
  // Called as bytes and lines come (lines at most LineSplitter::kLineBytesMax, without line end);
  // never after the Child was destroyed. May be empty. Must not destroy the Child.
  std::function<void(Stream, std::string_view)> on_output = {};
  std::function<void(std::string_view)> on_line = {};
};

struct ExitStatus {
  int code = 0;    // meaningful if signal is 0
  int signal = 0;  // what killed it, or 0
  bool core_dumped = false;

  bool clean() const { return code == 0 && signal == 0; }
  // "exit status 1", "killed by SIGSEGV (core dumped)"
  std::string text() const;
};

struct Grace {
  async::Duration term;  // between SIGTERM and SIGKILL; zero or less: SIGKILL at once
};

class ChildState;

class Child {
 public:
  static constexpr std::size_t kTailBytesMax = 64 * 1024;

  explicit Child(std::shared_ptr<ChildState> state);
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child();

  pid_t pid() const;
  // Set once the child has been reaped, its group was killed and its last output was read.
  async::Event& exited();
  std::optional<ExitStatus> status() const;

  // The last kTailBytesMax bytes it printed, and how many there were in all.
  std::string output_tail() const;
  std::uint64_t output_bytes() const;

  // Of a guarded child: remembers what its group shares in memory, so that it can be removed also
  // after members that ended unseen. Once it has all its helpers.
  void note_shared_memory();

  // To the whole group; nothing once the child was reaped.
  void signal(int number);

  // SIGTERM to the group, SIGKILL to it after the grace, then waits until the child is reaped. May
  // be called any number of times and by several at once; the shortest grace counts. The handle may
  // be destroyed while callers wait. Can't be cancelled: it ends by itself.
  async::awaitable<ExitStatus> stop(Grace grace);

 private:
  // Shared with the loop's handlers for the child's files and with Children, which reaps it: both
  // go on after the handle has gone.
  std::shared_ptr<ChildState> state_;
};

class Children {
 public:
  Children(async::Executor executor, async::Clock& clock);
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;
  // Kills and reaps, without grace, what stop_all has not stopped.
  ~Children();

  // Raises this process's soft limit of descriptors to the hard one; children get the old one back.
  // Returns the limit that holds now.
  std::uint64_t raise_descriptor_limit();

  // Starts a process. Returns once the program itself runs, so a failed exec is an error here:
  // not_found (no such program), invalid_request, io; draining after begin_shutdown().
  Result<std::unique_ptr<Child>> spawn(Command command);

  // From now on nothing starts.
  void begin_shutdown() { draining_ = true; }
  // begin_shutdown(), then stops all children at once; returns when the last is reaped.
  async::awaitable<void> stop_all(Grace grace);
  // Started and not yet reaped.
  std::size_t alive() const { return alive_.size(); }

 private:
  async::Executor executor_;
  async::Clock& clock_;
  std::list<std::shared_ptr<ChildState>> alive_;
  std::optional<std::uint64_t> descriptor_limit_;  // what children get, where ours was raised
  bool draining_ = false;
};

}  // namespace werk::process
