// The members of a process group and what they share in memory, as the kernel's process table tells
// it: for the end of a child whose helpers may outlive it. Nothing here asks for memory where not
// said, since a guardian, a copy of a process with threads, calls it too. No state but the
// caller's; any thread.
#pragma once

#include <sys/types.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <string_view>
#include <vector>

#include "werk/process/descriptor.hpp"

namespace werk::process::os {

// A process descriptor: becomes readable when the process has ended. Empty if there is none.
Descriptor open_process(pid_t pid);

// Who of a process group has not ended; zombies have. Asks for memory.
std::vector<pid_t> living_members(pid_t group);
// Becomes readable when that one has ended; empty where none lives.
Descriptor first_living_member(pid_t group);
// Blocks until none lives, at most for so long.
void wait_for_group_end(pid_t group, std::chrono::milliseconds limit);
// SIGKILL to the leader and the members, except Python's resource trackers: those end by themselves
// once the others have gone, and remove what the others had made in shared memory and left there.
// Give them kTrackerGrace; then the group as a whole is killed.
void kill_all_but_trackers(pid_t group);
inline constexpr std::chrono::milliseconds kTrackerGrace{2000};

// Files of shared memory that members of a group had mapped, by their names below /dev/shm. Of a
// fixed size, since a guardian may not ask for memory.
class SharedFiles {
 public:
  // Adds what the living members have mapped now, as far as its name is one that Python, PyTorch
  // and vLLM give; those of others are nobody's business here.
  void note(pid_t group);
  // Removes those that are ours, still there, and mapped by nobody any more. Once the group ended.
  void remove_left();

 private:
  static constexpr std::size_t kMost = 128;
  static constexpr std::size_t kNameBytesMax = 64;
  using Name = std::array<char, kNameBytesMax>;

  void add(std::string_view name);

  std::array<Name, kMost> names_{};
  std::size_t count_ = 0;
};

}  // namespace werk::process::os
