// A parent that a test kills: starts three children that would live for long, prints their process
// numbers and then waits for nothing. With "guarded" it starts one whose helpers ignore SIGTERM and
// prints their numbers too; with "share NAME" it starts none and shares a file in memory.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <string_view>

#include "werk/async/loop.hpp"
#include "werk/process/child.hpp"
#include "werk/process/program.hpp"

namespace {

namespace async = werk::async;
namespace process = werk::process;

constexpr std::size_t kSharedBytes = 4096;

// The leader and two helpers, one of them in the other's care.
constexpr const char* kStubborn =
    "trap '' TERM; (trap '' TERM; sleep 1000 & echo $!; echo started; wait) & echo $!; echo $$; "
    "echo started; while :; do wait; done";

int share(const char* name) {
  const int file = ::shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
  if (file < 0 || ::ftruncate(file, kSharedBytes) != 0) return 1;
  if (::mmap(nullptr, kSharedBytes, PROT_READ, MAP_SHARED, file, 0) == MAP_FAILED) return 1;
  std::puts("sharing");
  std::fflush(stdout);
  while (true) ::pause();
}

}  // namespace

int main(int count, char** words) {
  const std::string_view mode = count > 1 ? words[1] : "";
  if (mode == "share") return share(words[2]);
  async::Loop loop;
  async::SteadyClock clock(loop.executor());
  process::Children children(loop.executor(), clock);
  std::vector<std::unique_ptr<process::Child>> started;
  const bool guarded = mode == "guarded";
  for (int i = 0; i < (guarded ? 1 : 3); ++i) {
    process::Command command{"/bin/sleep", {"1000"}, process::own_environment()};
    if (guarded) {
      command.program = "/bin/sh";
      command.arguments = {"-c", kStubborn};
      command.guard = process::Guard::group;
      command.on_line = [](std::string_view line) {
        std::printf("%.*s\n", static_cast<int>(line.size()), line.data());
        std::fflush(stdout);
      };
    }
    auto child = children.spawn(std::move(command));
    if (!child) return 1;
    if (!guarded) std::printf("%d\n", (*child)->pid());
    started.push_back(std::move(*child));
  }
  std::puts("running");
  std::fflush(stdout);
  loop.run();
  return 0;
}
