// `werk doctor` on machines that have all, some or nothing of what it takes.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <thread>

#include "tests/e2e/command_home.hpp"

namespace werk::test {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

class DoctorTest : public CommandHome {
 protected:
  explicit DoctorTest(json::object engine = {}) : CommandHome("doctor", std::move(engine)) {}

  // On a machine without programs, at a port that is free.
  CommandRun doctor(std::vector<std::string> words = {}, std::vector<std::string> more = {}) const {
    words.insert(words.begin(), {"doctor", "--port", port_});
    std::vector<std::string> all = more.empty() ? environment() : std::move(more);
    all.emplace_back("PATH=/nowhere");
    return run_werk(words, all);
  }
  std::vector<std::string> without_engine() const {
    std::vector<std::string> all = environment();
    std::erase_if(all, [](const auto& one) { return one.starts_with("WERK_LLAMA_SERVER="); });
    return all;
  }
  json::object report(std::vector<std::string> more = {}) const {
    return json::parse(doctor({"--json"}, std::move(more)).out).as_object();
  }
  static std::string machine(const json::object& report, std::string_view topic) {
    for (const json::value& one : report.at("machine").as_array()) {
      if (one.at("topic").as_string() == topic) {
        return std::string(one.at("finding").as_string()) + ": " +
               std::string(one.at("text").as_string());
      }
    }
    return "none";
  }

  std::string port_ = "0";
};

TEST_F(DoctorTest, AMachineThatCanServeIsStatusZeroWithEngineAndModels) {
  install({"a", "b"});
  const CommandRun done = doctor();
  EXPECT_EQ(done.status, 0) << done.out << done.err;
  EXPECT_EQ(done.err, "");
  expect_has(done.out, "ok    llama-server 0.5.0, named by WERK_LLAMA_SERVER\n");
  expect_has(done.out, "        " + EngineControl::program() + "\n");
  expect_has(done.out, "ok    a, by llama-cpu\n");
  expect_has(done.out, "ok    b, by llama-cpu\n");
  expect_has(done.out, "Models can be served.\n");
  EXPECT_EQ(engines_.count("ready"), 0u) << "nothing is loaded for it";
}

TEST_F(DoctorTest, LinesHaveEightyColumnsUnlessAWordIsLonger) {
  install({"a"});
  std::istringstream text(doctor({}, without_engine()).out);
  for (std::string line; std::getline(text, line);) {
    const std::size_t words = line.find_first_not_of(' ', 8);
    const bool one_word = words == std::string::npos || line.find(' ', words) == std::string::npos;
    EXPECT_TRUE(line.size() <= 80 || one_word) << line;
  }
}

TEST_F(DoctorTest, AMachineWithNothingIsStatusOneWithTheCommandsThatHelp) {
  const CommandRun done = doctor({}, without_engine());
  EXPECT_EQ(done.status, 1);
  EXPECT_EQ(done.err, "");
  expect_has(done.out, "LACK  there is no llama-server\n");
  expect_has(done.out, "LACK  no model is installed\n");
  expect_has(done.out,
             "Nothing can be served.\nWhat helps:\n  werk engine install llama-server\n"
             "  werk pull smollm2\n");
  EXPECT_EQ(done.out.find('\x1b'), std::string::npos);
}

TEST_F(DoctorTest, AModelWithoutAnEngineSaysWhy) {
  install({"a"});
  const json::object page = report(without_engine());
  EXPECT_FALSE(page.at("can_serve").as_bool());
  const json::value& model = page.at("models").as_array().front();
  EXPECT_TRUE(model.at("engine").is_null());
  expect_has(std::string(model.at("problem").as_string()), "no usable llama-server");
}

TEST_F(DoctorTest, ABrokenModelIsNamedAndTheOthersAreServed) {
  install({"a", "bad"});
  std::ofstream(home_ / "models" / "bad" / "manifest.json", std::ios::trunc) << "{";
  install({"gone"});
  fs::remove_all(home_ / "models" / "gone" / "files");
  const CommandRun done = doctor();
  EXPECT_EQ(done.status, 0) << done.out;
  expect_has(done.out, "LACK  bad: ");
  expect_has(done.out, "LACK  gone: ");
  expect_has(done.out, "  werk remove bad\n");
}

TEST_F(DoctorTest, ANamedEngineThatIsMissingIsALack) {
  install({"a"});
  std::vector<std::string> variables = without_engine();
  variables.emplace_back("WERK_LLAMA_SERVER_CPU=/nowhere/llama-server");
  const CommandRun done = doctor({}, variables);
  EXPECT_EQ(done.status, 1);
  expect_has(done.out, "named by WERK_LLAMA_SERVER_CPU: there is no such");
}

TEST_F(DoctorTest, AnEngineWhoseThreadsSpinIsToldWithThePackageThatHelps) {
  install({"a"});
  const std::string spins =
      "its threads spin while they wait, so each model gets a part of the cores\n";
  const std::string plain = doctor().out;
  expect_has(plain, spins);
  EXPECT_EQ(plain.find("libomp5"), std::string::npos) << "it has no OpenMP that could be replaced";
  const std::string gnus = home_ / "gnus";
  std::ofstream(gnus) << "#!/bin/sh\n[ -z \"$LD_PRELOAD\" ] || exit 1\n"
                         "[ \"$1\" != --list-devices ] || "
                         "printf '  7:\\tcalling init: /lib/libgomp.so.1\\n'\nexec "
                      << EngineControl::program() << " \"$@\"\n";
  fs::permissions(gnus, fs::perms::owner_all);
  std::vector<std::string> variables = without_engine();
  variables.push_back("WERK_LLAMA_SERVER=" + gnus);
  expect_has(doctor({}, variables).out,
             spins + "        with LLVM's OpenMP (package libomp5) each would get all\n");
  const json::object page = report(variables);
  EXPECT_TRUE(page.at("engines").as_array().front().at("threads_spin").as_bool());
}

TEST_F(DoctorTest, TheHomesNodeAndItsPortAreKnown) {
  install({"a"});
  NodeProcess node({home_.path(), {}, environment()});
  port_ = std::to_string(node.port());
  const json::object page = report();
  EXPECT_EQ(machine(page, "node"), "ok: process " + std::to_string(node.pid()) +
                                       " serves this home at http://127.0.0.1:" + port_);
  EXPECT_EQ(machine(page, "port"), "ok: 127.0.0.1:" + port_ + " is this home's node");
}

TEST_F(DoctorTest, AnotherWerkAtThePortIsNamed) {
  install({"a"});
  const TemporaryFolder other;
  std::vector<std::string> variables = environment();
  variables.pop_back();  // our home
  NodeProcess node({other.path(), {}, variables});
  port_ = std::to_string(node.port());
  EXPECT_EQ(machine(report(), "port"), "note: 127.0.0.1:" + port_ +
                                           " is held by another Werk; `werk serve --port N` takes "
                                           "another one");
}

TEST_F(DoctorTest, AnOllamaAtThePortIsNamed) {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  ASSERT_EQ(::bind(listener, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::listen(listener, 8), 0);
  ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size);
  port_ = std::to_string(ntohs(address.sin_port));
  std::thread ollama([listener] {
    const int caller = ::accept(listener, nullptr, nullptr);
    char request[4096];
    if (::read(caller, request, sizeof(request)) > 0) {
      const std::string answer =
          "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 17\r\n\r\n"
          "Ollama is running";
      EXPECT_EQ(::write(caller, answer.data(), answer.size()), std::ssize(answer));
    }
    ::close(caller);
  });
  expect_has(machine(report(), "port"), "is held by Ollama; `werk serve --port N`");
  ::shutdown(listener, SHUT_RDWR);
  ollama.join();
  ::close(listener);
}

TEST_F(DoctorTest, AHomeThatCantBeWrittenIsALack) {
  std::vector<std::string> variables = environment();
  std::ofstream(home_ / "file") << "x";
  variables.back() = "WERK_HOME=" + (home_ / "file" / "home").string();
  const CommandRun done = doctor({}, variables);
  EXPECT_EQ(done.status, 1);
}

TEST_F(DoctorTest, ColoursAreForATerminalThatWantsThem) {
  const auto printed = [this](const std::vector<std::string>& words, const std::string& variable) {
    CommandProcess::Settings one{words, environment(), Around::terminal, {}};
    one.environment.push_back(variable);
    CommandProcess command(one);
    command.wait_exit();
    return command.out();
  };
  const std::vector<std::string> commands[] = {{"doctor", "--port", "0"},
                                               {"serve", "--model", "none", "--port", "0"}};
  for (const auto& words : commands) {
    EXPECT_NE(printed(words, "X=1").find('\x1b'), std::string::npos);
    EXPECT_EQ(printed(words, "NO_COLOR=1").find('\x1b'), std::string::npos);
    EXPECT_EQ(printed(words, "TERM=dumb").find('\x1b'), std::string::npos);
  }
}

class OldEngineTest : public DoctorTest {
 protected:
  OldEngineTest()
      : DoctorTest({{"help_without", {"--cache-ram", "--no-ui"}},
                    {"devices", {"Vulkan0: A card (8192 MiB, 8000 MiB free)"}}}) {}
};

TEST_F(OldEngineTest, DevicesAndWhatAnEngineLacksAreTold) {
  install({"a"});
  const json::object page = report();
  const json::value& engine = page.at("engines").as_array().front();
  expect_has(std::string(engine.at("devices").as_array().at(0).as_string()), "Vulkan0 (A card");
  expect_has(json::serialize(engine.at("lacks")), "--cache-ram");
  EXPECT_EQ(page.at("models").as_array().front().at("engine").as_string(), "llama-vulkan");
}

}  // namespace
}  // namespace werk::test
