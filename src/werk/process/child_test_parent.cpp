// A parent that a test kills: starts three children that would live for long, prints their process
// numbers and then waits for nothing.
#include <cstdio>

#include "werk/async/loop.hpp"
#include "werk/process/child.hpp"
#include "werk/process/program.hpp"

int main() {
  namespace async = werk::async;
  namespace process = werk::process;
  async::Loop loop;
  async::SteadyClock clock(loop.executor());
  process::Children children(loop.executor(), clock);
  std::vector<std::unique_ptr<process::Child>> started;
  for (int i = 0; i < 3; ++i) {
    process::Command command{"/bin/sleep", {"1000"}, process::own_environment()};
    auto child = children.spawn(std::move(command));
    if (!child) return 1;
    std::printf("%d\n", (*child)->pid());
    started.push_back(std::move(*child));
  }
  std::puts("running");
  std::fflush(stdout);
  loop.run();
  return 0;
}
