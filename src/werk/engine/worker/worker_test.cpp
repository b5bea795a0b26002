// The contract of a worker, seen from the node: the real channel and the fake worker program, which
// speaks through the same code as the workers that Werk brings (tests/workers/fake_worker.py).
#include "werk/engine/worker/worker.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <fstream>

#include "tests/support/loop_fixture.hpp"
#include "tests/support/manual_clock.hpp"
#include "tests/support/temporary_folder.hpp"
#include "werk/base/json_cursor.hpp"
#include "werk/engine/worker/answer_chunks.hpp"
#include "werk/engine/worker/chat_task.hpp"
#include "werk/engine/worker/worker_engine.hpp"
#include "werk/process/program.hpp"

namespace werk::engine::worker {
namespace {

constexpr std::chrono::seconds kCancelLimit{5};
constexpr int kChannel = 3;

class WorkerContract : public test::LoopFixture {
 protected:
  ~WorkerContract() override {
    if (worker_) {
      run(end());
      worker_.reset();
    }
  }

  // `script` is what the fake reads at its start.
  void spawn(const std::string& script) {
    std::ofstream(folder_ / "script.json") << script;
    std::array<int, 2> ends{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
    for (const int each : ends) ::fcntl(each, F_SETFD, FD_CLOEXEC);
    ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
    process::Command command;
    command.program = "python3";
    command.arguments = {WERK_FAKE_WORKER};
    command.environment = worker_environment(process::own_environment(), kChannel, 1);
    command.environment.push_back("FAKE_ENGINE_SCRIPT=" + (folder_ / "script.json").string());
    command.descriptors = {{ends[1], kChannel}};
    auto child = children_.spawn(std::move(command));
    ASSERT_TRUE(child.has_value()) << child.error().message;
    ::close(ends[1]);
    worker_ =
        std::make_unique<Worker>(executor(), clock_, std::move(*child), ends[0], kCancelLimit);
  }

  async::awaitable<void> end() {
    const async::Duration at_once = async::Duration::zero();
    co_await worker_->stop(at_once);
  }

  void load() {
    hello();
    auto answers = answers_to(Worker::Kind::load, [this](RequestId id) {
      return load_message(id, folder_.path().string(), LoadOptions{});
    });
    ASSERT_FALSE(answers.empty());
    ASSERT_TRUE(std::holds_alternative<Loaded>(answers.back()));
  }

  void hello() { run(await_hello()); }

  async::awaitable<void> await_hello() {
    const std::stop_token never;
    hello_ = co_await worker_->hello(never);
  }

  Worker::Asked generate(const std::string& prompt) {
    return worker_->ask(Worker::Kind::generate,
                        [&](RequestId id) { return generate_message(id, task(prompt)); });
  }

  static ChatTask task(const std::string& prompt) {
    return *read_chat_task(R"({"messages":[{"role":"user","content":")" + prompt +
                           R"("}],"temperature":0})");
  }

  // Everything up to the request's end, or until the worker is gone.
  std::vector<FromWorker> rest_of(Worker::Asked asked) {
    std::vector<FromWorker> all;
    run(collect(std::move(asked), all));
    return all;
  }

  async::awaitable<void> collect(Worker::Asked asked, std::vector<FromWorker>& all) {
    const std::stop_token never;
    while (true) {
      Result<FromWorker> next = co_await worker_->next(asked, never);
      if (!next) {
        error_ = next.error();
        co_return;
      }
      const bool last = !std::holds_alternative<Progress>(*next) &&
                        !std::holds_alternative<TokenEvent>(*next) &&
                        !std::holds_alternative<GenerationStarted>(*next);
      all.push_back(std::move(*next));
      if (last) co_return;
    }
  }

  std::vector<FromWorker> answers_to(Worker::Kind kind,
                                     const std::function<std::string(RequestId)>& message) {
    return rest_of(worker_->ask(kind, message));
  }

  // Waits for one answer that is not the last.
  void first_of(const Worker::Asked& asked) { run(take_one(asked)); }

  async::awaitable<void> take_one(Worker::Asked asked) {
    const std::stop_token never;
    Result<FromWorker> next = co_await worker_->next(asked, never);
    EXPECT_TRUE(next.has_value());
  }

  static std::string text_of(const std::vector<FromWorker>& answers) {
    std::string text;
    for (const FromWorker& one : answers) {
      if (const auto* token = std::get_if<TokenEvent>(&one)) text += token->bytes;
    }
    return text;
  }

  void expect_gone(std::string_view why) {
    run_until([this] { return worker_->exited().is_set(); });
    ASSERT_TRUE(worker_->end().has_value());
    EXPECT_NE(worker_->end()->message.find(why), std::string::npos) << worker_->end()->message;
  }

  test::TemporaryFolder folder_;
  test::ManualClock clock_;
  process::Children children_{executor(), clock_};
  std::unique_ptr<Worker> worker_;
  Result<Hello> hello_ = fail(ErrorCode::internal, "not asked");
  std::optional<Error> error_;
};

TEST_F(WorkerContract, SaysHelloLoadsWithProgressAndAnswersWithUsage) {
  spawn(R"({"progress": 2, "reply": {"content": ["one", " two"]}})");
  load();
  EXPECT_EQ(hello_->engine, "fake");
  const auto answers = rest_of(generate("hi there"));
  EXPECT_EQ(text_of(answers), "one two");
  ASSERT_TRUE(std::holds_alternative<GenerationStarted>(answers.front()));
  const auto& finished = std::get<GenerationFinished>(answers.back());
  EXPECT_EQ(finished.usage.completion_tokens, 2u);
  EXPECT_EQ(finished.usage.prompt_tokens,
            std::get<GenerationStarted>(answers.front()).prompt_tokens);
}

TEST_F(WorkerContract, ACountDuringAGenerationIsAnsweredAndEqualsItsUsage) {
  spawn(R"({"reply": {"content": "a b c", "hold": true}})");
  load();
  const Worker::Asked held = generate("one two three");
  first_of(held);
  const auto counted = answers_to(
      Worker::Kind::count, [](RequestId id) { return count_message(id, task("one two three")); });
  ASSERT_EQ(counted.size(), 1u);
  EXPECT_EQ(std::get<Counted>(counted.front()).tokens, 4u);
  worker_->cancel(held);
  const auto rest = rest_of(held);
  const auto& finished = std::get<GenerationFinished>(rest.back());
  EXPECT_EQ(finished.reason, EndReason::cancelled);
  EXPECT_EQ(finished.usage.prompt_tokens, 4u);
}

TEST_F(WorkerContract, AGenerationThatIsGivenUpFreesTheNextAndSaysNothingMore) {
  spawn(R"({"replies": [{"content": "a b c", "hold_after": 1}, {"content": "next"}]})");
  load();
  Worker::Asked left = generate("x");
  first_of(left);
  worker_->give_up(left);
  EXPECT_TRUE(worker_->is_busy());
  run_until([this] { return !worker_->is_busy(); });
  EXPECT_EQ(text_of(rest_of(generate("y"))), "next");
}

TEST_F(WorkerContract, ACancelThatIsNotConfirmedWithinTheLimitEndsTheWorker) {
  spawn(R"({"reply": {"content": "a b", "hold": true, "deaf": true}})");
  load();
  const Worker::Asked deaf = generate("x");
  first_of(deaf);
  worker_->give_up(deaf);
  clock_.advance(kCancelLimit - std::chrono::milliseconds(1));
  poll();
  EXPECT_FALSE(worker_->end().has_value());
  clock_.advance(std::chrono::milliseconds(1));
  expect_gone("did not confirm a cancel within 5.0 s");
}

TEST_F(WorkerContract, AReaderThatIsSlowerThanItsWorkerLosesNothing) {
  spawn(R"({"reply": {"tokens": 3000}})");
  load();
  const Worker::Asked asked = generate("x");
  run_until([this] { return !worker_->is_busy(); });
  const auto answers = rest_of(asked);
  ASSERT_EQ(answers.size(), 3u) << "what waits is kept as one piece";
  EXPECT_EQ(std::get<TokenEvent>(answers[1]).tokens, 3000u);
}

TEST_F(WorkerContract, CharactersThatAreCutArriveWhole) {
  spawn(R"({"reply": {"content": "h\u00e9llo \ud83d\ude00 w\u00f6rld", "cut": 1}})");
  load();
  AnswerChunks chunks(ChatTask{}, "m", "s");
  for (const FromWorker& one : rest_of(generate("x"))) {
    if (const auto* token = std::get_if<TokenEvent>(&one)) chunks.token(*token);
  }
  std::string text;
  while (const auto chunk = chunks.next()) {
    const auto choices = find_member(*chunk, "choices").value_or("");
    JsonArrayCursor each(choices);
    const auto choice = each.next();
    const auto delta = find_member(choice.value_or(""), "delta").value_or("");
    text += json_string(find_member(delta, "content").value_or("")).value_or("");
  }
  EXPECT_EQ(text, "héllo 😀 wörld");
}

TEST_F(WorkerContract, AGiantPromptArrivesWhole) {
  spawn(R"({"context": 0, "reply": {"content": "ok"}})");
  load();
  std::string prompt;
  while (prompt.size() < (std::size_t{8} << 20)) prompt += "word ";
  const auto answers = rest_of(generate(prompt));
  ASSERT_FALSE(answers.empty());
  EXPECT_GT(std::get<GenerationStarted>(answers.front()).prompt_tokens, 1'000'000u);
}

TEST_F(WorkerContract, APromptThatIsTooLongIsToldWithItsNumbers) {
  spawn(R"({"context": 3, "reply": {"content": "ok"}})");
  load();
  const auto answers = rest_of(generate("one two three four"));
  const auto& failed = std::get<Failed>(answers.back());
  EXPECT_EQ(failed.error.code, ErrorCode::context_length_exceeded);
  EXPECT_EQ(failed.error.overflow->context_tokens, 3u);
  EXPECT_FALSE(worker_->is_busy());
}

TEST_F(WorkerContract, AFailedLoadLeavesTheWorkerReadyForAnother) {
  spawn(R"({"needs_folder": true, "reply": {"content": "ok"}})");
  hello();
  const auto load_it = [this](RequestId id) {
    return load_message(id, folder_.path().string(), LoadOptions{});
  };
  const auto failed = answers_to(Worker::Kind::load, load_it);
  EXPECT_EQ(std::get<Failed>(failed.back()).error.code, ErrorCode::model_unusable);
  std::ofstream(folder_ / "model.json") << "{}";
  const auto loaded = answers_to(Worker::Kind::load, load_it);
  EXPECT_TRUE(std::holds_alternative<Loaded>(loaded.back()));
}

async::awaitable<void> unload_it(Worker& worker, bool& unloaded) {
  unloaded = co_await worker.unload();
}

TEST_F(WorkerContract, AnUnloadedWorkerLoadsAnotherModel) {
  spawn(R"({"reply": {"content": "ok"}})");
  load();
  bool unloaded = false;
  run(unload_it(*worker_, unloaded));
  EXPECT_TRUE(unloaded);
  load();
  EXPECT_EQ(text_of(rest_of(generate("x"))), "ok");
}

struct Misdeed {
  const char* what;
  const char* told;
};

class WorkerMisdeeds : public WorkerContract, public ::testing::WithParamInterface<Misdeed> {};

TEST_P(WorkerMisdeeds, EndTheWorkerWithTheRuleThatWasBroken) {
  spawn(std::string(R"({"reply": {"content": "a b", "send_after": 1, "send": ")") +
        GetParam().what + R"("}})");
  load();
  rest_of(generate("x"));
  ASSERT_TRUE(error_.has_value()) << "the generation ended as if nothing had happened";
  EXPECT_NE(error_->message.find(GetParam().told), std::string::npos) << error_->message;
  expect_gone(GetParam().told);
}

INSTANTIATE_TEST_SUITE_P(
    Each, WorkerMisdeeds,
    ::testing::Values(
        Misdeed{"unknown_type", "there is no message \"nonsense\""},
        Misdeed{"no_type", "a message has no type"},
        Misdeed{"lacks_member", "\"text\" of token is not there"},
        Misdeed{"wrong_type", "\"text\" of token is not a text"},
        Misdeed{"wrong_id", "an answer to nothing"},
        Misdeed{"out_of_turn", "an answer of another kind"},
        Misdeed{"second_start", "a second \"started\""}, Misdeed{"second_hello", "a second hello"},
        Misdeed{"fault", "the node said something odd"}, Misdeed{"garbage", "a frame is not JSON"},
        Misdeed{"no_object", "a frame holds no object"}, Misdeed{"no_utf8", "a frame is not JSON"},
        Misdeed{"too_deep", "a frame is not JSON"}, Misdeed{"empty", "a frame is not JSON"},
        Misdeed{"oversized", "a frame of 2097152 bytes"}, Misdeed{"half", "the worker ended"}),
    [](const auto& each) { return std::string(each.param.what); });

struct Crash {
  const char* name;
  const char* script;
};

class WorkerCrashes : public WorkerContract, public ::testing::WithParamInterface<Crash> {};

TEST_P(WorkerCrashes, AreToldToWhoeverWaits) {
  spawn(GetParam().script);
  hello();
  answers_to(Worker::Kind::load, [this](RequestId id) {
    return load_message(id, folder_.path().string(), LoadOptions{});
  });
  if (!error_) rest_of(generate("x"));
  ASSERT_TRUE(error_.has_value());
  EXPECT_EQ(error_->code, ErrorCode::engine_failed);
  expect_gone("the worker ended: ");
  // Who asks afterwards learns the same at once.
  const auto later = answers_to(Worker::Kind::generate,
                                [](RequestId id) { return generate_message(id, task("y")); });
  EXPECT_TRUE(later.empty());
}

INSTANTIATE_TEST_SUITE_P(
    Each, WorkerCrashes,
    ::testing::Values(
        Crash{"AtStart", R"({"start": "exit"})"}, Crash{"AtLoad", R"({"load": "exit"})"},
        Crash{"AtLoadBySignal", R"({"load": "kill"})"},
        Crash{"AtTheFirstToken", R"({"reply": {"content": "a b", "die": "exit"}})"},
        Crash{"InTheMiddle", R"({"reply": {"content": "a b c", "die": "kill", "die_after": 2}})"},
        Crash{"AtTheEnd", R"({"reply": {"content": "a b", "die": "exit", "die_after": 2}})"}),
    [](const auto& each) { return std::string(each.param.name); });

}  // namespace
}  // namespace werk::engine::worker
