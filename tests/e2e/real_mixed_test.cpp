// One node over llama-server, ONNX GenAI, vLLM and a second node at once, all real, asked by six
// clients in both dialects. Each engine overlaps as its row in docs/concurrency.md says, seen on
// the node's page, on the second node's and in vLLM's own metrics while the clients run. A part
// that isn't prepared is left out, saying so; without llama-server all is skipped. Engines get one
// thread.
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <boost/json.hpp>
#include <functional>
#include <future>
#include <iostream>
#include <set>

#include "tests/e2e/chat_answer.hpp"
#include "tests/e2e/prepared.hpp"
#include "tests/e2e/test_node.hpp"

namespace werk::test {
namespace {

namespace json = boost::json;

constexpr std::chrono::seconds kWatchdog{240};
constexpr std::size_t kClients = 6;

enum class Dialect : std::uint8_t { openai, messages };
enum class Asked : std::uint8_t { streamed, whole };

// An answer as its client understands it.
struct Reading {
  std::string model;
  std::string text;
  std::string reason;
  std::uint64_t output_tokens = 0;
  bool ended = false;
};

Reading read_openai(const std::string& body, Asked asked) {
  const ChatAnswer answer = asked == Asked::streamed ? read_stream(body) : read_whole(body);
  Reading reading{{}, answer.content, answer.finish_reason, 0, false};
  reading.model = answer.chunks.front().at("model").as_string();
  reading.ended = answer.done || asked == Asked::whole;
  if (answer.usages.size() == 1)
    reading.output_tokens = number_in({{"usage", answer.usages[0]}}, "usage", "completion_tokens");
  return reading;
}

Reading read_message(const std::string& body) {
  const json::object message = json::parse(body).as_object();
  Reading reading;
  reading.model = message.at("model").as_string();
  for (const json::value& block : message.at("content").as_array())
    reading.text += block.at("text").as_string();
  reading.reason = message.at("stop_reason").as_string();
  reading.output_tokens = number_in(message, "usage", "output_tokens");
  reading.ended = true;
  return reading;
}

Reading read_message_stream(std::string_view body) {
  constexpr std::string_view kData = "\ndata: ";
  Reading reading;
  for (std::size_t at = body.find(kData); at != std::string_view::npos; at = body.find(kData)) {
    body.remove_prefix(at + kData.size());
    const json::object event = json::parse(body.substr(0, body.find('\n'))).as_object();
    const std::string_view type = event.at("type").as_string();
    reading.ended = type == "message_stop";
    if (type == "message_start") reading.model = event.at("message").at("model").as_string();
    if (type == "content_block_delta") reading.text += event.at("delta").at("text").as_string();
    if (type != "message_delta") continue;
    reading.reason = event.at("delta").at("stop_reason").as_string();
    reading.output_tokens = number_in(event, "usage", "output_tokens");
  }
  return reading;
}

// Asks once and reads the answer as the dialect has it; what is wrong with it, or nothing.
std::string ask(std::uint16_t port, const std::string& model, Dialect dialect, Asked asked) {
  constexpr std::uint64_t kTokens = 12;
  const bool messages = dialect == Dialect::messages;
  std::string body = R"({"model":")" + model +
                     R"(","messages":[{"role":"user","content":"Name a river."}],)"
                     R"("temperature":0,"max_tokens":)" +
                     std::to_string(kTokens);
  if (asked == Asked::streamed) body += R"(,"stream":true)";
  if (asked == Asked::streamed && !messages) body += R"(,"stream_options":{"include_usage":true})";
  HttpCall call(port, "POST", messages ? "/v1/messages" : "/v1/chat/completions", body + "}");
  const std::string& answer = call.whole_body();
  if (call.status() != 200 || call.end() != BodyEnd::proper)
    return std::to_string(call.status()) + " of " + model + ": " + answer;
  Reading reading;
  if (!messages)
    reading = read_openai(answer, asked);
  else if (asked == Asked::whole)
    reading = read_message(answer);
  else
    reading = read_message_stream(answer);
  const std::set<std::string> reasons = messages ? std::set<std::string>{"max_tokens", "end_turn"}
                                                 : std::set<std::string>{"length", "stop"};
  const bool right = reading.ended && reading.model == model && reasons.contains(reading.reason) &&
                     reading.text.find_first_not_of(" \n") != std::string::npos &&
                     reading.output_tokens > 0 && reading.output_tokens <= kTokens;
  return right ? "" : "wrong answer of " + model + ": " + answer;
}

json::object page_of(std::uint16_t port) {
  HttpCall call(port, "GET", "/werk/v1/observability");
  return json::parse(call.whole_body()).as_object();
}

// A model and how its engine's row says that calls overlap.
struct Part {
  std::string model;
  std::size_t at_most;  // calls that run in it at once; 0: the node bounds none
  // Whether a state of the node is that overlap.
  std::function<bool(const json::object& runtime)> overlaps;
  std::size_t busiest = 0;
  std::atomic<bool> seen = false;
};

class RealMixed : public ::testing::Test {
 protected:
  void SetUp() override {
    llama_ = prepared_llama_server();
    onnx_ = prepared_onnx_genai();
    vllm_ = prepared_vllm();
    if (!llama_.missing.empty()) GTEST_SKIP() << llama_.missing;
    for (const PreparedEngine* engine : {&onnx_, &vllm_}) {
      if (!engine->missing.empty()) std::cout << "left out: " << engine->missing << "\n";
    }
  }

  static std::vector<std::string> words(std::vector<std::string> more) {
    more.insert(more.end(),
                {"--parallel", "2", "--ctx-size", "512", "--threads", "1", "--threads-batch", "1"});
    return more;
  }
  void start_far() {
    import_linked(far_home_.path(), llama_.model, "far");
    far_ = std::make_unique<NodeProcess>(NodeProcess::Settings{
        far_home_.path(), words({}), {"WERK_LLAMA_SERVER=" + llama_.program.string()}});
  }
  void start_node();
  void add(const std::string& model, std::size_t at_most,
           std::function<bool(const json::object&)> overlaps) {
    parts_.push_back(std::make_unique<Part>());
    parts_.back()->model = model;
    parts_.back()->at_most = at_most;
    parts_.back()->overlaps = std::move(overlaps);
  }
  std::vector<std::string> client(std::size_t number);
  void watch(const std::function<bool()>& clients_run);
  void look(const json::object& page);

  PreparedEngine llama_, onnx_, vllm_;
  TemporaryFolder home_, far_home_;
  std::unique_ptr<NodeProcess> far_;
  std::unique_ptr<NodeProcess> node_;
  std::vector<std::unique_ptr<Part>> parts_;
  std::atomic<bool> all_at_once_ = false;
  std::atomic<bool> given_up_ = false;
};

std::uint64_t busy(const json::object& runtime) { return number_in(runtime, "slots", "busy"); }

void RealMixed::start_node() {
  std::vector<std::string> environment{"WERK_LLAMA_SERVER=" + llama_.program.string()};
  import_linked(home_.path(), llama_.model, "gguf");
  add("gguf", 2, [](const json::object& runtime) { return busy(runtime) == 2; });
  add("far", 0, [this](const json::object& runtime) {
    return busy(runtime) >= 2 && busy(runtime_of(page_of(far_->port()), "far")) == 2;
  });
  if (onnx_.missing.empty()) {
    environment.push_back("WERK_ONNX_GENAI_PYTHON=" + onnx_.program.string());
    import_linked(home_.path(), onnx_.model, "onnx");
    add("onnx", 1, [](const json::object& runtime) {
      return busy(runtime) == 1 && runtime.at("waiting").to_number<int>() >= 1;
    });
  }
  if (vllm_.missing.empty()) {
    std::ranges::copy(vllm_node_environment(vllm_), std::back_inserter(environment));
    import_linked(home_.path(), vllm_.model, "hf");
    add("hf", 0, [](const json::object& runtime) {
      // Its metrics cost it time, so they are asked for only when they can tell something.
      return busy(runtime) >= 2 &&
             running_in_vllm(vllm_socket(runtime.at("pid").to_number<int>())) >= 2;
    });
  }
  const std::string far = "far=http://127.0.0.1:" + std::to_string(far_->port());
  node_ = std::make_unique<NodeProcess>(NodeProcess::Settings{
      home_.path(), words({"--backend", "auto", "--remote", far}), std::move(environment)});
  node_->port();
}

// Goes from model to model, each beginning with another one, and stays until overlap was seen there
// and, once, all engines at work together. Where only one client is left at a model, those that
// come keep it company: nobody goes on without having been seen.
std::vector<std::string> RealMixed::client(std::size_t number) {
  std::vector<std::string> faults;
  std::size_t asked = 0;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const Part& part = *parts_[(number + i) % parts_.size()];
    do {
      const std::size_t kind = asked++ + 2 * number + number / parts_.size();
      const Dialect dialect = kind % 4 < 2 ? Dialect::openai : Dialect::messages;
      std::string fault;
      try {
        fault =
            ask(node_->port(), part.model, dialect, kind % 2 == 0 ? Asked::streamed : Asked::whole);
      } catch (const std::exception& error) {
        fault = part.model + ": " + error.what();
      }
      if (fault.empty()) continue;
      faults.push_back(std::move(fault));
      given_up_ = true;  // or others wait for what can't come
    } while (!given_up_ && !(part.seen && all_at_once_));
  }
  return faults;
}

void RealMixed::look(const json::object& page) {
  std::size_t at_work = 0;
  for (const auto& part : parts_) {
    const json::object runtime = runtime_of(page, part->model);
    if (runtime.empty()) continue;
    part->busiest = std::max<std::size_t>(part->busiest, busy(runtime));
    if (busy(runtime) > 0) ++at_work;
    if (!part->seen && part->overlaps(runtime)) part->seen = true;
  }
  if (at_work == parts_.size()) all_at_once_ = true;
}

// Looks back to back until all clients have ended.
void RealMixed::watch(const std::function<bool()>& clients_run) {
  const auto until = std::chrono::steady_clock::now() + kWatchdog;
  while (clients_run()) {
    look(page_of(node_->port()));
    if (std::chrono::steady_clock::now() > until) given_up_ = true;
  }
}

TEST_F(RealMixed, SixClientsInBothDialectsOverFourKindsOfEngineEachOverlappingAsItsRowSays) {
  start_far();
  start_node();
  if (vllm_.missing.empty()) {
    // Which takes its time.
    const CommandRun load = run_werk({"load", "hf"}, {"WERK_HOME=" + home_.path().string()});
    ASSERT_EQ(load.status, 0) << load.err << node_->log();
  }
  std::vector<std::future<std::vector<std::string>>> clients;
  std::atomic<std::size_t> ended = 0;
  for (std::size_t number = 0; number < kClients; ++number) {
    clients.push_back(std::async(std::launch::async, [this, &ended, number] {
      std::vector<std::string> faults = client(number);
      ++ended;
      return faults;
    }));
  }
  watch([&ended] { return ended < kClients; });
  for (auto& client : clients) {
    for (const std::string& fault : client.get()) ADD_FAILURE() << fault;
  }
  EXPECT_TRUE(all_at_once_) << "all engines at work together";
  for (const auto& part : parts_) {
    EXPECT_TRUE(part->seen) << part->model << " was never seen to overlap as its row says";
    if (part->at_most > 0) {
      EXPECT_EQ(part->busiest, part->at_most) << part->model;
    }
  }
  const json::object page = page_of(node_->port());
  EXPECT_EQ(page.at("runtimes").as_array().size(), parts_.size());
  EXPECT_EQ(number_in(page, "calls", "failed"), 0u);
  EXPECT_GE(number_in(page, "calls", "served"), kClients * parts_.size());
  node_->signal(SIGTERM);
  EXPECT_EQ(node_->wait_exit(), 0) << node_->log();
  const json::object far = runtime_of(page_of(far_->port()), "far");
  EXPECT_EQ(far.at("state"), "ready") << "it is somebody else's";
}

}  // namespace
}  // namespace werk::test
