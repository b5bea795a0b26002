// The fake is trusted by many tests, so it has one of its own: does it say what llama-server says,
// does it hold what it is told to hold, and does it end the way it is told to?
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>

#include "tests/support/engine_control.hpp"

namespace werk::test {
namespace {

namespace json = boost::json;

// A client with blocking reads; its watchdog is the socket's.
class Client {
 public:
  explicit Client(const std::string& path) : file_(::socket(AF_UNIX, SOCK_STREAM, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    const auto* generic = reinterpret_cast<const sockaddr*>(&address);
    EXPECT_EQ(::connect(file_, generic, sizeof address), 0);
    const timeval limit{30, 0};
    ::setsockopt(file_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  }
  ~Client() { close(); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  void close() {
    if (file_ >= 0) ::close(file_);
    file_ = -1;
  }
  Client& ask(const std::string& method, const std::string& target, const std::string& body = "",
              const std::string& header = "") {
    const std::string head = method + " " + target + " HTTP/1.1\r\nHost: x\r\n" + header +
                             "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n";
    ::send(file_, (head + body).data(), head.size() + body.size(), MSG_NOSIGNAL);
    return *this;
  }
  Client& chat(const std::string& members = "") {
    return ask("POST", "/v1/chat/completions", R"({"messages":[],"stream":true)" + members + "}");
  }
  // Until the text has come, or the end.
  const std::string& until(std::string_view text) {
    while (!got_.contains(text) && read_more() > 0) {
    }
    EXPECT_TRUE(got_.contains(text)) << got_;
    return got_;
  }
  // Everything up to the end; `error` is 0 for a proper close.
  const std::string& rest() {
    ssize_t count = 1;
    while (count > 0) count = read_more();
    error = count < 0 ? errno : 0;
    return got_;
  }
  void forget() { got_.clear(); }

  int error = 0;

 private:
  ssize_t read_more() {
    std::array<char, 4096> buffer;
    const ssize_t count = ::recv(file_, buffer.data(), buffer.size(), 0);
    if (count > 0) got_.append(buffer.data(), static_cast<std::size_t>(count));
    return count;
  }
  int file_;
  std::string got_;
};

class FakeEngineTest : public ::testing::Test {
 protected:
  ~FakeEngineTest() override {
    for (const pid_t pid : started_) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
    }
  }

  // Runs the fake as a child of this test.
  pid_t start(const json::object& settings, std::vector<std::string> words = {}) {
    control_.set_settings(settings);
    socket_ = control_.folder() + "/e" + std::to_string(++sockets_) + ".sock";
    words.insert(words.begin(), {control_.linked_program(), "--host", socket_, "-m", "/m.gguf"});
    std::vector<std::string> entries = control_.environment();
    entries.emplace_back("LLAMA_API_KEY=" + key_);
    entries.emplace_back("PATH=/bin");
    std::vector<char*> arguments;
    std::vector<char*> environment;
    for (std::string& word : words) arguments.push_back(word.data());
    for (std::string& entry : entries) environment.push_back(entry.data());
    arguments.push_back(nullptr);
    environment.push_back(nullptr);
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::execve(arguments[0], arguments.data(), environment.data());
      ::_exit(127);
    }
    started_.push_back(pid);
    return pid;
  }
  void start_ready(const json::object& settings, std::vector<std::string> words = {}) {
    start(settings, std::move(words));
    control_.expect("ready");
  }
  int wait_for(pid_t pid) {
    int status = 0;
    ::waitpid(pid, &status, 0);
    std::erase(started_, pid);
    return status;
  }
  std::string whole_stream(const std::string& members = "") {
    return Client(socket_).chat(members).until("\r\n0\r\n\r\n");
  }

  EngineControl control_;
  std::vector<pid_t> started_;
  std::string socket_;
  std::string key_;
  int sockets_ = 0;
};

TEST_F(FakeEngineTest, ItTellsItsCommandLineAndTheVariablesThatMatter) {
  start_ready({}, {"--alias", "smol", "-np", "2"});
  const EngineEvent spawned = control_.expect("spawned");
  EXPECT_EQ(spawned.number("pid"), static_cast<std::uint64_t>(started_[0]));
  EXPECT_EQ(spawned.text("alias"), "smol");
  const json::object& variables = spawned.all.at("env").as_object();
  EXPECT_TRUE(variables.contains("WERK_TEST_MARK"));
  EXPECT_TRUE(variables.contains("LLAMA_API_KEY"));
  EXPECT_FALSE(variables.contains("PATH"));
  EXPECT_EQ(control_.living(), started_);
}

TEST_F(FakeEngineTest, UntilItIsReadyEveryPathAnswersThatTheModelLoads) {
  start({{"start", "hold"}});
  control_.expect("listening");
  const std::string loading =
      R"({"error":{"code":503,"message":"Loading model","type":"unavailable_error"}})";
  EXPECT_TRUE(Client(socket_).ask("GET", "/health").rest().ends_with(loading));
  EXPECT_TRUE(Client(socket_).chat().rest().starts_with("HTTP/1.1 503 "));
  control_.ready(0);
  control_.expect("ready");
  EXPECT_TRUE(Client(socket_).ask("GET", "/health").until(R"({"status":"ok"})").contains(" 200 "));
}

TEST_F(FakeEngineTest, SlotsContextAndNameFollowTheCommandLineUnlessToldOtherwise) {
  start_ready({}, {"--alias", "smol", "-np", "4", "-c", "5000"});
  const std::string props = Client(socket_).ask("GET", "/props").until("is_sleeping");
  EXPECT_TRUE(props.contains(R"("total_slots":4)")) << props;
  EXPECT_TRUE(props.contains(R"("n_ctx":1280)")) << "rounded up to 256";
  const std::string models = Client(socket_).ask("GET", "/v1/models").until("owned_by");
  EXPECT_TRUE(models.contains(R"("id":"smol")"));
  control_.send(0, {{"do", "set"}, {"alias", "another"}, {"total_slots", 1}});
  control_.expect("set");
  EXPECT_TRUE(Client(socket_).ask("GET", "/v1/models").until("n_ctx").contains("another"));
}

TEST_F(FakeEngineTest, AStreamHasTheEventsOfTheRealOneInOrder) {
  start_ready({{"reply", json::object{{"tokens", 2}}}}, {"--alias", "smol"});
  const std::string stream =
      whole_stream(R"(,"return_progress":true,"stream_options":{"include_usage":true})");
  std::size_t at = 0;
  const std::vector<std::string> parts{
      "Content-Type: text/event-stream",
      R"("prompt_progress":{"total":32,"cache":0,"processed":0)",
      R"("processed":32)",
      R"({"role":"assistant","content":null}}],"created")",
      R"("delta":{"content":"tok0 "})",
      R"("delta":{"content":"tok1 "})",
      R"("finish_reason":"stop","index":0,"delta":{})",
      R"({"choices":[],)",
      R"("completion_tokens":2,"prompt_tokens":32,"total_tokens":34)",
      "data: [DONE]\n\n"};
  for (const std::string& part : parts) {
    at = stream.find(part, at);
    ASSERT_NE(at, std::string::npos) << part << "\n" << stream;
  }
  EXPECT_EQ(whole_stream().find("usage"), std::string::npos);
  Client whole(socket_);
  whole.ask("POST", "/v1/chat/completions", R"({"messages":[],"max_tokens":1})").until("timings");
  EXPECT_TRUE(whole.until("}").contains(R"("finish_reason":"length")"));
  whole.forget();
  EXPECT_TRUE(whole.ask("GET", "/health").until("ok").contains("200")) << "the connection lives";
}

TEST_F(FakeEngineTest, ItHoldsCallsUntilAllHaveArrived) {
  start_ready({{"hold_until", 3}});
  Client a(socket_);
  Client b(socket_);
  a.chat();
  b.chat();
  control_.expect("request");
  EXPECT_EQ(control_.expect("request").number("open"), 2u);
  EXPECT_EQ(control_.open_max(0), 2u);
  EXPECT_EQ(control_.count("answered"), 0u);
  Client c(socket_);
  c.chat();
  for (Client* client : {&a, &b, &c}) client->until("[DONE]");
  EXPECT_EQ(control_.open_max(0), 3u);
}

TEST_F(FakeEngineTest, EachTokenWaitsForItsStepAndALeavingClientIsNoticedAtOnce) {
  start_ready({{"reply", json::object{{"gated", true}}}});
  Client client(socket_);
  client.chat();
  const std::uint64_t request = control_.expect("request").request();
  EXPECT_FALSE(client.until("null}}").contains("tok0"));
  control_.step(0, request, 2);
  EXPECT_FALSE(client.until("tok1").contains("tok2"));
  client.close();
  const EngineEvent closed = control_.expect("closed");
  EXPECT_EQ(closed.request(), request);
  EXPECT_EQ(closed.number("events"), 3u);
}

TEST_F(FakeEngineTest, AHeldCallIsReleasedWithAReplyAndOneThatLeftCanKeepItsSlotBusy) {
  start_ready({{"reply", json::object{{"hold", true}}}, {"busy_after_close", true}}, {"-np", "1"});
  Client client(socket_);
  client.chat();
  std::uint64_t request = control_.expect("request").request();
  control_.send(0, {{"do", "reply"}, {"request", request}, {"content", json::array{"h\u00e9"}}});
  EXPECT_TRUE(client.until("[DONE]").contains("h\u00e9"));
  client.forget();
  client.chat();
  request = control_.expect("request").request();
  client.close();
  control_.expect("closed");
  EXPECT_TRUE(Client(socket_).ask("GET", "/slots").until("]").contains(R"("is_processing":true)"));
  control_.release(0, request);
}

TEST_F(FakeEngineTest, ItEndsStreamsInEveryBadWay) {
  json::array replies;
  for (const char* how : {"close", "end", "error", "garbage", "reset", "garbage_http"}) {
    const json::object death{{"after", 2}, {"how", how}};
    replies.push_back(json::object{{"die", death}});
  }
  start_ready({{"replies", replies}});
  Client close(socket_);
  EXPECT_FALSE(close.chat().rest().contains("\r\n0\r\n\r\n"));
  EXPECT_TRUE(close.rest().contains("tok0"));
  EXPECT_FALSE(close.rest().contains("tok1"));
  const std::string end = Client(socket_).chat().rest();
  EXPECT_TRUE(end.ends_with("\r\n0\r\n\r\n"));
  EXPECT_FALSE(end.contains("[DONE]"));
  EXPECT_TRUE(Client(socket_).chat().rest().contains(R"(data: {"error":{"code":500)"));
  EXPECT_TRUE(Client(socket_).chat().rest().contains('\xff'));
  Client reset(socket_);
  reset.chat().rest();
  EXPECT_EQ(reset.error, ECONNRESET);
  EXPECT_TRUE(Client(socket_).chat().rest().contains("this is no HTTP"));
}

TEST_F(FakeEngineTest, ItDiesAsToldBeforeDuringAndAfterTheStart) {
  const pid_t never = start({{"start", "exit"}, {"exit_code", 3}, {"stderr", "no memory\n"}});
  EXPECT_EQ(WEXITSTATUS(wait_for(never)), 3);
  const pid_t killed =
      start({{"reply", json::object{{"die", json::object{{"after", 1}, {"how", "kill"}}}}}});
  control_.expect("ready");
  Client(socket_).chat().rest();
  EXPECT_EQ(WTERMSIG(wait_for(killed)), SIGKILL);
  control_.expect_from(1, "gone");
  const pid_t stubborn = start({{"ignore_term", true}});
  control_.expect("ready");
  ::kill(stubborn, SIGTERM);
  control_.expect("term");
  control_.exit(2, 5, "bye\n");
  EXPECT_EQ(control_.expect_from(2, "exiting").number("code"), 5u);
  EXPECT_EQ(WEXITSTATUS(wait_for(stubborn)), 5);
  const pid_t obedient = start({});
  control_.expect("ready");
  ::kill(obedient, SIGTERM);
  EXPECT_EQ(wait_for(obedient), 0);
  EXPECT_TRUE(control_.none_living_within(std::chrono::seconds(2)));
}

TEST_F(FakeEngineTest, AKeyIsAskedForWhereOneIsGiven) {
  key_ = "secret";
  start_ready({});
  EXPECT_TRUE(Client(socket_).chat().rest().starts_with("HTTP/1.1 401 "));
  EXPECT_TRUE(Client(socket_)
                  .ask("GET", "/props", "", "Authorization: Bearer secret\r\n")
                  .until("total_slots")
                  .starts_with("HTTP/1.1 200 "));
}

TEST_F(FakeEngineTest, ErrorsReasoningToolCallsAndOddLinesComeAsToldInPieces) {
  const json::object overflow{{"type", "exceed_context_size_error"},
                              {"message", "too long"},
                              {"n_prompt_tokens", 9},
                              {"n_ctx", 8}};
  const json::object call{{"id", "c1"}, {"name", "f"}, {"arguments", json::array{"{\"a\"", ":1}"}}};
  const json::array replies{
      json::object{{"status", 400}, {"error", overflow}},
      json::object{{"reasoning", json::array{"hm"}}, {"reasoning_field", "reasoning"}},
      json::object{{"tool_calls", json::array{call}}},
      json::object{{"events", json::array{"x"}},
                   {"line_end", "crlf"},
                   {"comments", true},
                   {"segment_bytes", 1}}};
  start_ready({{"replies", replies}});
  EXPECT_TRUE(Client(socket_).chat().rest().contains(R"("n_prompt_tokens":9,"n_ctx":8)"));
  EXPECT_TRUE(whole_stream().contains(R"({"reasoning":"hm"})"));
  const std::string calls = whole_stream();
  EXPECT_TRUE(
      calls.contains(R"("id":"c1","type":"function","function":{"name":"f","arguments":""})"));
  EXPECT_TRUE(calls.contains(R"({"index":0,"function":{"arguments":":1}"}})"));
  EXPECT_TRUE(calls.contains(R"("finish_reason":"tool_calls")"));
  EXPECT_TRUE(whole_stream().contains(":\r\n\r\ndata: x\r\n\r\n\r\n"));
}

TEST_F(FakeEngineTest, AnIdleConnectionIsClosedWhenTold) {
  start_ready({});
  Client client(socket_);
  client.ask("GET", "/health").until("ok");
  // The next read of the connection has begun once the fake calls it idle.
  std::uint64_t closed = 0;
  while (closed == 0) {
    control_.send(0, {{"do", "close_idle"}});
    closed = control_.expect("idle_closed").number("connections");
  }
  client.rest();
  EXPECT_EQ(client.error, 0);
}

}  // namespace
}  // namespace werk::test
