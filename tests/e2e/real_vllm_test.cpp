// A node over the real vLLM on the processor, from the outside. The environment is the one that
// WERK_TEST_VLLM names (tests/vllm/prepare), the model that of tests/workers/prepare; what is
// missing is skipped, saying so. vLLM gets one thread. A start takes one to three minutes, so few
// tests go far with each.
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>

#include "tests/e2e/chat_answer.hpp"
#include "tests/e2e/prepared.hpp"
#include "tests/e2e/test_node.hpp"
#include "tests/support/http_call.hpp"
#include "tests/support/node_process.hpp"
#include "tests/support/piped_process.hpp"
#include "tests/support/temporary_folder.hpp"

namespace werk::test {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

constexpr std::chrono::seconds kWatchdog{60};
constexpr std::string_view kLong =
    R"("max_tokens":900,"ignore_eos":true,"temperature":0,"stream":true)";

std::string read_file(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The members of a process group that haven't ended, by their names.
std::vector<std::pair<pid_t, std::string>> members_of(pid_t group) {
  std::vector<std::pair<pid_t, std::string>> members;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const auto pid = static_cast<pid_t>(std::stoi(name));
    const std::string stat = read_file(entry.path() / "stat");
    const std::size_t close = stat.rfind(')');
    if (::getpgid(pid) != group || close == std::string::npos || stat[close + 2] == 'Z') continue;
    const std::size_t open = stat.find('(');
    members.emplace_back(pid, stat.substr(open + 1, close - open - 1));
  }
  return members;
}

// What Python and vLLM put into shared memory.
std::set<std::string> shared_memory() {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator("/dev/shm")) {
    const std::string name = entry.path().filename();
    if (name.starts_with("psm_") || name.starts_with("sem.mp-")) names.insert(name);
  }
  return names;
}

bool ends_within(pid_t pid, std::chrono::seconds limit) {
  const int file = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  if (file < 0) return true;
  pollfd wait{file, POLLIN, 0};
  const bool ended =
      ::poll(&wait, 1, static_cast<int>(std::chrono::milliseconds(limit).count())) == 1;
  ::close(file);
  return ended;
}

// The loopback port on which this process listens; 0: none. Its helpers have ports of their own.
std::uint16_t listening_port(pid_t pid) {
  constexpr std::string_view kLoopback = "0100007F:";
  std::set<std::string> sockets;
  for (const auto& file : fs::directory_iterator("/proc/" + std::to_string(pid) + "/fd")) {
    std::error_code gone;
    const std::string target = fs::read_symlink(file.path(), gone).string();
    if (target.starts_with("socket:[")) sockets.insert(target.substr(8, target.size() - 9));
  }
  std::ifstream table("/proc/net/tcp");
  std::string row;
  std::getline(table, row);
  while (std::getline(table, row)) {
    std::istringstream words(row);
    std::string number, local, remote, state, queues, timer, retransmits, user, timeout, inode;
    words >> number >> local >> remote >> state >> queues >> timer >> retransmits >> user >>
        timeout >> inode;
    if (state != "0A" || !sockets.contains(inode) || !local.starts_with(kLoopback)) continue;
    return static_cast<std::uint16_t>(std::stoul(local.substr(kLoopback.size()), nullptr, 16));
  }
  return 0;
}

// A server that is killed leaves its shared memory behind.
class EndsInPeace {
 public:
  explicit EndsInPeace(PipedProcess& server) : server_(server) {}
  EndsInPeace(const EndsInPeace&) = delete;
  EndsInPeace& operator=(const EndsInPeace&) = delete;
  ~EndsInPeace() {
    // Its front end goes first; Python's resource tracker, which removes the memory, goes last.
    const auto members = members_of(server_.pid());
    server_.signal(SIGTERM);
    for (const auto& [pid, name] : members) ends_within(pid, kWatchdog);
  }

 private:
  PipedProcess& server_;
};

class RealVllm : public ::testing::Test {
 protected:
  void SetUp() override {
    vllm_ = prepared_vllm();
    if (!vllm_.missing.empty()) GTEST_SKIP() << vllm_.missing;
    import_linked(home_.path(), vllm_.model, "m");
  }

  NodeProcess::Settings settings() const {
    return {home_.path(), {"--backend", "vllm", "--persistence"}, vllm_node_environment(vllm_)};
  }
  // As its owner starts it, on a port that the kernel chooses.
  PipedProcess::Settings by_hand() const {
    PipedProcess::Settings server;
    server.program = vllm_.program.string();
    server.words = {(vllm_.program.parent_path() / "vllm").string(),
                    "serve",
                    vllm_.model.string(),
                    "--host",
                    "127.0.0.1",
                    "--port",
                    "0",
                    "--served-model-name",
                    "theirs"};
    std::ranges::copy(small_vllm_words(), std::back_inserter(server.words));
    server.environment = small_vllm_environment();
    server.environment.insert(server.environment.end(),
                              {"PATH=/usr/bin:/bin", "HOME=" + home_.path().string(),
                               "HF_HUB_OFFLINE=1", "VLLM_NO_USAGE_STATS=1", "PYTHONUNBUFFERED=1"});
    return server;
  }
  static std::string body(std::string_view more) {
    return R"({"model":"m","messages":[{"role":"user","content":"Name a river."}],)" +
           std::string(more) + "}";
  }
  // Waits for as long as a start takes.
  void load() {
    const CommandRun run = run_werk({"load", "m"}, {"WERK_HOME=" + home_.path().string()});
    ASSERT_EQ(run.status, 0) << run.err;
  }
  static HttpCall chat(NodeProcess& node, std::string_view more) {
    return HttpCall(node.port(), "POST", "/v1/chat/completions", body(more));
  }
  static json::object runtime(NodeProcess& node) {
    HttpCall call(node.port(), "GET", "/werk/v1/observability");
    return runtime_of(json::parse(call.whole_body()).as_object(), "m");
  }
  static pid_t engine_of(NodeProcess& node) {
    return static_cast<pid_t>(runtime(node).at("pid").to_number<int>());
  }
  // Asks the engine itself back to back until so many run.
  static bool comes_to_run(const std::string& socket, int wanted) {
    const auto until = std::chrono::steady_clock::now() + kWatchdog;
    while (std::chrono::steady_clock::now() < until) {
      if (running_in_vllm(socket) == wanted) return true;
    }
    return false;
  }

  void expect_answers(NodeProcess& node);
  void expect_overlap_and_cancellation(NodeProcess& node);
  void expect_a_new_engine_after_its_core_died(NodeProcess& node);
  void expect_nothing_left_of_a_killed_node(NodeProcess& node,
                                            const std::set<std::string>& shared_before);

  PreparedEngine vllm_;
  TemporaryFolder home_;
};

void RealVllm::expect_answers(NodeProcess& node) {
  HttpCall whole = chat(node, R"("max_tokens":12,"temperature":0)");
  ASSERT_EQ(whole.status(), 200) << whole.whole_body() << node.log();
  const ChatAnswer answer = read_whole(whole.whole_body());
  EXPECT_FALSE(answer.content.empty());
  HttpCall streamed = chat(node, R"("max_tokens":12,"temperature":0,"stream":true)");
  const std::string events = streamed.whole_body();
  EXPECT_TRUE(events.ends_with("data: [DONE]\n\n")) << events;
  EXPECT_EQ(events.find("\"usage\""), std::string::npos) << "the client didn't ask";
  HttpCall count(node.port(), "POST", "/v1/messages/count_tokens",
                 R"({"model":"m","messages":[{"role":"user","content":"Name a river."}]})");
  ASSERT_EQ(count.status(), 200) << count.whole_body();
  HttpCall message(
      node.port(), "POST", "/v1/messages",
      R"({"model":"m","max_tokens":8,"messages":[{"role":"user","content":"Name a river."}]})");
  ASSERT_EQ(message.status(), 200) << message.whole_body();
  const json::value usage = json::parse(message.whole_body()).at("usage");
  const auto number = [&](std::string_view name) {
    const json::value* value = usage.as_object().if_contains(name);
    return value != nullptr && value->is_number() ? value->to_number<std::uint64_t>() : 0;
  };
  EXPECT_EQ(number("input_tokens") + number("cache_read_input_tokens"),
            json::parse(count.whole_body()).at("input_tokens").to_number<std::uint64_t>());
  std::string words;
  for (int i = 0; i < 1200; ++i) words += "word ";
  HttpCall too_long(node.port(), "POST", "/v1/chat/completions",
                    R"({"model":"m","messages":[{"role":"user","content":")" + words + "\"}]}");
  EXPECT_EQ(too_long.status(), 400);
  EXPECT_EQ(json::parse(too_long.whole_body()).at("error").at("code"), "context_length_exceeded");
}

void RealVllm::expect_overlap_and_cancellation(NodeProcess& node) {
  const std::string socket = vllm_socket(engine_of(node));
  ASSERT_FALSE(socket.empty());
  {
    std::vector<HttpCall> calls;
    for (int i = 0; i < 4; ++i) calls.push_back(chat(node, kLong));
    EXPECT_TRUE(comes_to_run(socket, 4)) << "four calls overlap in the engine";
  }
  EXPECT_TRUE(comes_to_run(socket, 0)) << "whose clients have left";
}

void RealVllm::expect_a_new_engine_after_its_core_died(NodeProcess& node) {
  const pid_t first = engine_of(node);
  HttpCall call = chat(node, kLong);
  ASSERT_EQ(call.status(), 200);
  ASSERT_TRUE(comes_to_run(vllm_socket(first), 1));
  for (const auto& [pid, name] : members_of(first)) {
    if (name.starts_with("VLLM::EngineCor")) ::kill(pid, SIGKILL);
  }
  const std::string body = call.whole_body();
  EXPECT_NE(body.find("\"error\""), std::string::npos) << body;
  EXPECT_EQ(body.find("[DONE]"), std::string::npos) << "an error is no success";
  load();
  HttpCall next = chat(node, R"("max_tokens":4)");
  EXPECT_EQ(next.status(), 200) << next.whole_body();
  EXPECT_NE(engine_of(node), first);
  EXPECT_TRUE(members_of(first).empty());
}

void RealVllm::expect_nothing_left_of_a_killed_node(NodeProcess& node,
                                                    const std::set<std::string>& shared_before) {
  const pid_t engine = engine_of(node);
  const auto members = members_of(engine);
  EXPECT_GE(members.size(), 3u);
  std::vector<pid_t> others;
  std::ifstream children("/proc/" + std::to_string(node.pid()) + "/task/" +
                         std::to_string(node.pid()) + "/children");
  for (pid_t pid = 0; children >> pid;) {
    if (pid != engine) others.push_back(pid);
  }
  ASSERT_EQ(others.size(), 1u) << "the guardian";
  ::kill(node.pid(), SIGKILL);
  for (const auto& [pid, name] : members) EXPECT_TRUE(ends_within(pid, kWatchdog)) << name;
  EXPECT_TRUE(ends_within(others.front(), kWatchdog));
  std::set<std::string> left;
  const std::set<std::string> now = shared_memory();
  std::ranges::set_difference(now, shared_before, std::inserter(left, left.end()));
  EXPECT_TRUE(left.empty()) << *left.begin() << " and perhaps more";
}

TEST_F(RealVllm, ServesOverlapsCancelsIsReplacedAndLeavesNothing) {
  const std::set<std::string> shared_before = shared_memory();
  NodeProcess node(settings());
  node.port();
  load();
  if (HasFailure()) FAIL() << node.log();
  expect_answers(node);
  if (HasFailure()) return;
  expect_overlap_and_cancellation(node);
  expect_a_new_engine_after_its_core_died(node);
  if (HasFailure()) return;
  expect_nothing_left_of_a_killed_node(node, shared_before);
}

TEST_F(RealVllm, StartedByHandItServesAsARemoteAndIsUntouchedAtTheNodesEnd) {
  PipedProcess server(by_hand());
  const EndsInPeace peace(server);
  server.wait_for_text("Application startup complete", std::chrono::minutes(10));
  // It listens just after it has said so.
  const auto until = std::chrono::steady_clock::now() + kWatchdog;
  std::uint16_t port = 0;
  while (port == 0 && std::chrono::steady_clock::now() < until) port = listening_port(server.pid());
  ASSERT_NE(port, 0);
  {
    NodeProcess node({home_.path(),
                      {"--backend", "vllm", "--persistence"},
                      {"WERK_VLLM_HOST=127.0.0.1", "WERK_VLLM_PORT=" + std::to_string(port)}});
    expect_answers(node);
    node.signal(SIGTERM);
    EXPECT_EQ(node.wait_exit(), 0) << node.log();
    EXPECT_NE(node.log().find("nothing is sent to vllm"), std::string::npos) << node.log();
  }
  EXPECT_GE(members_of(server.pid()).size(), 3u) << "it is somebody else's";
  HttpCall health(port, "GET", "/health");
  EXPECT_EQ(health.status(), 200);
}

}  // namespace
}  // namespace werk::test
