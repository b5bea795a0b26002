#include "werk/process/child.hpp"

#include <sys/resource.h>

#include <csignal>
#include <cstring>

#include "werk/base/log.hpp"
#include "werk/process/child_state.hpp"
#include "werk/process/linux.hpp"
#include "werk/process/program.hpp"

namespace werk::process {

namespace {

async::awaitable<ExitStatus> stop_and_wait(std::shared_ptr<ChildState> state, Grace grace) {
  state->begin_stop(grace);
  co_await state->exited().wait();
  co_return *state->status();
}

bool holds_null(const std::string& text) { return text.contains('\0'); }

// A null byte would cut the word where the kernel reads it.
Status check_words(const Command& command) {
  bool bad = holds_null(command.program) || holds_null(command.directory);
  for (const std::string& word : command.arguments) bad = bad || holds_null(word);
  for (const std::string& word : command.environment) bad = bad || holds_null(word);
  if (!bad) return {};
  return fail(ErrorCode::invalid_request,
              fmt::format("the command line or environment of '{}' holds a null byte",
                          command.program.c_str()));
}

Result<std::string> locate(const Command& command) {
  if (command.program.contains('/')) return command.program;  // exec itself says what is wrong
  auto search_path = variable_in(command.environment, "PATH");
  if (!search_path) search_path = own_variable("PATH");
  auto path = find_program(command.program, search_path.value_or("/usr/local/bin:/usr/bin:/bin"));
  if (path) return *std::move(path);
  return fail(ErrorCode::not_found,
              fmt::format("cannot start '{}': no such program in PATH", command.program));
}

}  // namespace

std::string ExitStatus::text() const {
  if (signal == 0) return fmt::format("exit status {}", code);
  return fmt::format("killed by {}{}", os::signal_name(signal),
                     core_dumped ? " (core dumped)" : "");
}

Child::Child(std::shared_ptr<ChildState> state) : state_(std::move(state)) {}
Child::~Child() { state_->abandon(); }
pid_t Child::pid() const { return state_->pid(); }
async::Event& Child::exited() { return state_->exited(); }
std::optional<ExitStatus> Child::status() const { return state_->status(); }
std::string Child::output_tail() const { return state_->tail().text(); }
std::uint64_t Child::output_bytes() const { return state_->tail().total_bytes(); }
void Child::note_shared_memory() { state_->note_shared_memory(); }
void Child::signal(int number) { state_->signal(number); }
async::awaitable<ExitStatus> Child::stop(Grace grace) { return stop_and_wait(state_, grace); }

Children::Children(async::Executor executor, async::Clock& clock)
    : executor_(std::move(executor)), clock_(clock) {
  // Where it is ignored (some launchers do that), ended children vanish without a status.
  std::signal(SIGCHLD, SIG_DFL);
}

Children::~Children() {
  for (const std::shared_ptr<ChildState>& state : alive_) state->end_now();
}

std::uint64_t Children::raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  const rlim_t before = limit.rlim_cur;
  if (before == limit.rlim_max) return before;
  limit.rlim_cur = limit.rlim_max;
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) {
    log::warn("the limit of {} open files can't be raised: {}", before, std::strerror(errno));
    return before;
  }
  if (!descriptor_limit_) descriptor_limit_ = before;
  return limit.rlim_cur;
}

Result<std::unique_ptr<Child>> Children::spawn(Command command) {
  if (draining_) return fail(ErrorCode::draining, "the node is shutting down: nothing starts now");
  if (auto checked = check_words(command); !checked) return pass_on(checked);
  auto path = locate(command);
  if (!path) return pass_on(path);
  auto files = os::open_files(command);
  if (!files) return pass_on(files);

  // Registered before it runs: whoever stops all children finds it from its first moment on.
  const auto place = alive_.insert(
      alive_.end(), std::make_shared<ChildState>(executor_, clock_, std::move(command)));
  const std::shared_ptr<ChildState> state = *place;
  auto launched = os::launch(*path, state->command(), *files, descriptor_limit_);
  if (!launched) {
    alive_.erase(place);
    return pass_on(launched);
  }
  state->watch(std::move(*launched), std::move(files->out_reader), std::move(files->err_reader),
               [this, place] { alive_.erase(place); });
  log::debug("process {} started: {}", state->pid(), *path);
  return std::make_unique<Child>(state);
}

async::awaitable<void> Children::stop_all(Grace grace) {
  begin_shutdown();
  const std::vector<std::shared_ptr<ChildState>> states(alive_.begin(), alive_.end());
  for (const std::shared_ptr<ChildState>& state : states) state->begin_stop(grace);
  for (const std::shared_ptr<ChildState>& state : states) co_await state->exited().wait();
}

}  // namespace werk::process
