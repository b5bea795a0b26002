// A node that serves another node's models: what its list and pages say, both dialects, keys, a
// peer that dies in mid-stream and comes back, one that is down from the start, and names that two
// have. The engines behind the peer are fake.
#include <gtest/gtest.h>

#include <csignal>
#include <fstream>

#include "tests/e2e/chat_answer.hpp"
#include "tests/e2e/test_node.hpp"

namespace werk::test {
namespace {

namespace json = boost::json;

constexpr std::string_view kStreamed = R"("stream":true)";
constexpr std::string_view kSecret = "sk-remote-secret-0123456789";

// Replies of the fake engine: the deltas of an answer.
json::object saying(std::string_view text) { return {{"content", json::array{text}}}; }
json::object engine_that_says(std::string_view text) { return {{"reply", saying(text)}}; }
const json::object kSays = engine_that_says("one two");

std::string url_of(std::uint16_t port) { return "http://127.0.0.1:" + std::to_string(port); }

// A node without models of its own that has `peer` as its remote "far".
TestNode::Settings before(TestNode& peer) {
  return {.models = {}, .arguments = {"--remote", "far=" + url_of(peer.port())}};
}

json::array models_of(TestNode& node) {
  return json::parse(node.get("/v1/models").whole_body()).at("data").as_array();
}

HttpCall message(TestNode& node, std::string_view model, std::string_view more = {}) {
  const std::string body = R"({"model":")" + std::string(model) +
                           R"(","max_tokens":50,"messages":[{"role":"user","content":"hi"}])" +
                           std::string(more) + "}";
  return HttpCall(node.port(), "POST", "/v1/messages", body);
}

std::string write_config(const TemporaryFolder& folder, const std::string& text) {
  const std::filesystem::path path = folder.path() / "werk.toml";
  std::ofstream(path) << text;
  return path.string();
}

TEST(Remote, AnotherWerksModelsAreListedAndServedInBothDialects) {
  TestNode peer({.engine = kSays});
  TestNode front(before(peer));
  const json::array models = models_of(front);
  ASSERT_EQ(models.size(), 1u);
  EXPECT_EQ(models[0].at("id"), "a");
  EXPECT_EQ(models[0].at("owned_by"), "far");
  EXPECT_EQ(models[0].at("meta").at("remote"), true);
  EXPECT_TRUE(models[0].at("meta").at("parameters").is_null());
  EXPECT_EQ(peer.engines().count("spawned"), 0u) << "a look loads nothing";

  EXPECT_EQ(read_whole(front.chat("a").whole_body()).content, "one two");
  const ChatAnswer stream = read_stream(front.chat("a", kStreamed).whole_body());
  EXPECT_EQ(stream.content, "one two");
  EXPECT_TRUE(stream.done);
  EXPECT_EQ(stream.chunks.front().at("model"), "a");
  EXPECT_EQ(read_whole(front.chat("far/a").whole_body()).content, "one two");
  HttpCall whole = message(front, "a");
  EXPECT_EQ(json::parse(whole.whole_body()).at("content").at(0).at("text"), "one two")
      << whole.whole_body();
  HttpCall streamed = message(front, "a", R"(,"stream":true)");
  EXPECT_NE(streamed.whole_body().find("event: message_stop"), std::string::npos);
  EXPECT_EQ(streamed.end(), BodyEnd::proper);
  peer.process().wait_for_line(" route=/v1/messages ");  // it went there as it was
  EXPECT_EQ(peer.engines().count("spawned"), 1u);
  EXPECT_EQ(front.engines().count("spawned"), 0u);
  const CommandRun list = run_werk({"list"}, {"WERK_HOME=" + front.home().string()});
  EXPECT_NE(list.out.find("remote far"), std::string::npos) << list.out << list.err;
}

TEST(Remote, ItsRuntimeShowsThePeersCapacityAndClaimsNoProcess) {
  TestNode peer({.engine = kSays, .arguments = {"--parallel", "3"}});
  ASSERT_EQ(peer.chat("a").status(), 200);  // it is loaded there before the front looks
  TestNode front(before(peer));
  ASSERT_EQ(front.chat("a").status(), 200);
  const json::object runtime = runtime_of(front.observability(), "a");
  EXPECT_EQ(runtime.at("engine"), "remote:far");
  EXPECT_EQ(runtime.at("state"), "ready");
  EXPECT_TRUE(runtime.at("pid").is_null());
  EXPECT_EQ(runtime.at("slots").at("total"), 3);
}

TEST(Remote, OfAServerThatIsNoWerkNothingIsClaimed) {
  TestNode peer({.engine = kSays});
  TemporaryFolder folder;
  const std::string config = write_config(
      folder, "[remotes.far]\nurl = \"" + url_of(peer.port()) + "\"\nkind = \"openai\"\n");
  TestNode front({.models = {}, .arguments = {"--config", config}});
  ASSERT_EQ(front.chat("a").status(), 200);
  EXPECT_TRUE(runtime_of(front.observability(), "a").at("slots").at("total").is_null());
}

TEST(Remote, ParallelBoundsTheCallsAndTheOthersWaitHere) {
  TestNode peer({.engine = {{"reply", {{"hold", true}}}}, .arguments = {"--parallel", "4"}});
  TemporaryFolder folder;
  const std::string config =
      write_config(folder, "[remotes.far]\nurl = \"" + url_of(peer.port()) + "\"\nparallel = 1\n");
  TestNode front({.models = {}, .arguments = {"--config", config}});
  HttpCall first = front.chat("a");
  const EngineEvent running = peer.generation();
  HttpCall second = front.chat("a");
  front.await_waiting(1);
  EXPECT_EQ(peer.generations(), 1u);
  peer.reply(running, saying("first"));
  EXPECT_EQ(read_whole(first.whole_body()).content, "first");
  peer.reply(peer.generation(), saying("second"));
  EXPECT_EQ(read_whole(second.whole_body()).content, "second");
}

TEST(Remote, AClientThatLeavesFreesTheSlotFarAway) {
  TestNode peer({.engine = {{"reply", {{"gated", true}}}}});
  TestNode front(before(peer));
  HttpCall call = front.chat("a", kStreamed);
  const EngineEvent running = peer.generation();
  peer.engines().step(running.engine, running.request(), 2);
  call.body_until("tok1");
  call.close();
  EXPECT_EQ(peer.engines().expect("closed").request(), running.request());
}

// What is said in each dialect when the peer is killed under a stream.
void expect_told(HttpCall& call, std::string_view sign) {
  EXPECT_NE(call.whole_body().find("tok1"), std::string::npos) << call.whole_body();
  EXPECT_NE(call.whole_body().find(sign), std::string::npos) << call.whole_body();
  EXPECT_EQ(call.end(), BodyEnd::cut);
  EXPECT_EQ(call.whole_body().find("[DONE]"), std::string::npos);
  EXPECT_EQ(call.whole_body().find("message_stop"), std::string::npos);
}

TEST(Remote, APeerThatIsKilledInMidStreamIsToldAndTheNextCallFindsItBack) {
  TestNode peer({.engine = {{"replies", {{{"gated", true}}, {{"gated", true}}}}},
                 .arguments = {"--parallel", "2"}});
  TestNode front(before(peer));
  const std::string port = std::to_string(peer.port());
  HttpCall chat = front.chat("a", kStreamed);
  const EngineEvent first = peer.generation();
  HttpCall messages = message(front, "a", R"(,"stream":true)");
  const EngineEvent second = peer.generation();
  for (const EngineEvent& one : {first, second}) peer.engines().step(one.engine, one.request(), 2);
  chat.body_until("tok1");
  messages.body_until("tok1");
  peer.process().signal(SIGKILL);
  expect_told(chat, "data: {\"error\":");
  expect_told(messages, "event: error");
  peer.engines().expect_from(first.engine, "gone");
  peer.engines().set_settings(kSays);
  peer.start_again({"--port", port});
  peer.port();  // it serves
  HttpCall next = front.chat("a");
  EXPECT_EQ(next.status(), 200) << next.whole_body();
  EXPECT_EQ(read_whole(next.whole_body()).content, "one two");
}

TEST(Remote, APeerThatIsDownIsGivenUpAtTheThirdCallAndThenRefusedAtOnceWithTheCause) {
  TestNode peer({.engine = kSays});
  TestNode front(before(peer));
  const std::string port = std::to_string(peer.port());
  ASSERT_EQ(front.chat("a").status(), 200);
  peer.process().signal(SIGKILL);
  peer.process().wait_exit();
  for (int i = 0; i < 3; ++i) {
    HttpCall call = front.chat("a");
    EXPECT_EQ(call.status(), 502) << call.whole_body();
  }
  front.await_no_runtimes();
  HttpCall refused = front.chat("a");
  EXPECT_EQ(refused.status(), 503);
  EXPECT_NE(refused.header("Retry-After"), "");
  const ChatAnswer told = read_whole(refused.whole_body());
  EXPECT_EQ(error_text(told, "code"), "start_failed");
  EXPECT_NE(error_text(told, "message").find("remote far"), std::string::npos);
  ASSERT_EQ(models_of(front).size(), 1u) << "what it said last stands";

  peer.start_again({"--port", port});
  int status = 503;
  for (int tries = 0; status == 503 && tries < 100'000; ++tries) status = front.chat("a").status();
  EXPECT_EQ(status, 200) << "a trial finds it back once the back-off is over";
}

TEST(Remote, ARemoteThatIsDownKeepsNoNodeFromStarting) {
  TestNode peer({.engine = kSays});
  const std::string url = url_of(peer.port());
  const std::string port = std::to_string(peer.port());
  peer.process().signal(SIGTERM);
  peer.process().wait_exit();
  TemporaryFolder folder;
  const std::string config =
      write_config(folder, "[remotes.found]\nurl = \"" + url + "\"\n[remotes.named]\nurl = \"" +
                               url + "\"\nmodels = [\"n\"]\n");
  TestNode front({.models = {{"own"}}, .engine = kSays, .arguments = {"--config", config}});
  EXPECT_EQ(front.chat("own").status(), 200);
  ASSERT_EQ(models_of(front).size(), 2u);
  HttpCall refused = front.chat("n");
  EXPECT_EQ(refused.status(), 503);
  EXPECT_NE(refused.whole_body().find("remote named: cannot connect"), std::string::npos)
      << refused.whole_body();
  EXPECT_EQ(front.chat("a").status(), 404) << "nobody knows yet what it has";
}

TEST(Remote, NamesThatTwoHaveAreToldApart) {
  TestNode peer({.models = {{"a"}, {"b"}}, .engine = engine_that_says("far")});
  TestNode front({.models = {{"a"}},
                  .engine = engine_that_says("near"),
                  .arguments = {"--remote", "far=" + url_of(peer.port())}});
  std::vector<std::string> ids;
  for (const json::value& model : models_of(front)) ids.emplace_back(model.at("id").as_string());
  EXPECT_EQ(ids, (std::vector<std::string>{"a", "far/a", "b"}));
  EXPECT_EQ(read_whole(front.chat("a").whole_body()).content, "near");
  EXPECT_EQ(read_whole(front.chat("far/a").whole_body()).content, "far");
  EXPECT_EQ(read_whole(front.chat("b").whole_body()).content, "far");
}

TEST(Remote, ANameThatWasImportedThereAMomentAgoIsFound) {
  TestNode peer({.models = {{"a"}}, .engine = kSays});
  TestNode front(before(peer));
  ASSERT_EQ(models_of(front).size(), 1u);
  install_tiny_models(peer.home(), {{"later"}});
  int status = 404;
  for (int tries = 0; status == 404 && tries < 100'000; ++tries)
    status = front.chat("later").status();
  EXPECT_EQ(status, 200) << "as soon as the list may be asked for again";
}

TEST(Remote, NodesThatPointAtEachOtherListNoModelTwiceAndRefuseACallThatGoesRound) {
  TestNode here({.models = {{"own"}}, .engine = kSays});
  TestNode there(before(here));
  const std::string port = std::to_string(here.port());
  TemporaryFolder folder;
  const std::string there_url = "url = \"" + url_of(there.port()) + "\"\n";
  const std::string config =
      write_config(folder, "[remotes.found]\n" + there_url + "[remotes.named]\n" + there_url +
                               "models = [\"far/own\"]\n");
  here.process().signal(SIGTERM);
  here.process().wait_exit();
  here.start_again({"--port", port, "--config", config});
  EXPECT_EQ(models_of(here).size(), 2u) << "its own and the one that its settings name";
  EXPECT_EQ(here.chat("own").status(), 200);
  HttpCall round = here.chat("named/far/own");
  EXPECT_EQ(round.status(), 400) << round.whole_body();
  EXPECT_EQ(error_text(read_whole(round.whole_body()), "code"), "loop_detected");
  HttpCall message_round = message(here, "named/far/own");
  EXPECT_EQ(message_round.status(), 400) << message_round.whole_body();
}

TEST(Remote, TheKeyReachesThePeerAndNothingElse) {
  TestNode peer({.engine = kSays, .environment = {"WERK_API_KEY=" + std::string(kSecret)}});
  TemporaryFolder folder;
  const std::string config = write_config(
      folder, "[remotes.far]\nurl = \"" + url_of(peer.port()) + "\"\nkey_env = \"FAR_KEY\"\n");
  TestNode front({.models = {{"own"}},
                  .engine = kSays,
                  .arguments = {"--config", config},
                  .environment = {"FAR_KEY=" + std::string(kSecret)}});
  EXPECT_EQ(front.chat("a").status(), 200);
  EXPECT_EQ(front.chat("own").status(), 200);
  const json::object spawned = front.engines().expect("spawned").all;
  EXPECT_EQ(json::serialize(spawned).find(kSecret), std::string::npos)
      << "an engine inherits no key";
  EXPECT_EQ(json::serialize(front.observability()).find(kSecret), std::string::npos);
  EXPECT_EQ(front.process().log().find(kSecret), std::string::npos);
}

TEST(Remote, AKeyThatIsNotThereKeepsTheNodeFromStartingAndSaysWhich) {
  TemporaryFolder home;
  TemporaryFolder folder;
  const std::string config =
      write_config(folder, "[remotes.far]\nurl = \"http://127.0.0.1:9\"\nkey_env = \"FAR_KEY\"\n");
  NodeProcess node({home.path(), {"--config", config}});
  EXPECT_EQ(node.wait_exit(), 1);
  EXPECT_NE(node.log().find("remotes.far.key_env names FAR_KEY, which is not set"),
            std::string::npos)
      << node.log();
}

TEST(Remote, TheCommandsTellOfIt) {
  TestNode peer({.engine = kSays});
  TemporaryFolder home;
  const std::vector<std::string> environment = {"WERK_HOME=" + home.path().string()};
  const std::string remote = "far=" + url_of(peer.port());
  const CommandRun explained = run_werk({"explain", "a", "--remote", remote}, environment);
  EXPECT_EQ(explained.status, 0) << explained.err;
  EXPECT_NE(explained.out.find("a is served by remote:far"), std::string::npos) << explained.out;
  EXPECT_NE(explained.out.find(url_of(peer.port()) + "/v1"), std::string::npos);
  const CommandRun doctor = run_werk({"doctor", "--remote", remote}, environment);
  EXPECT_EQ(doctor.status, 0) << doctor.out;
  EXPECT_NE(doctor.out.find("far lists 1 model(s)"), std::string::npos) << doctor.out;
  const CommandRun down =
      run_werk({"doctor", "--json", "--remote", "gone=http://127.0.0.1:1"}, environment);
  const json::value report = json::parse(down.out);
  EXPECT_NE(report.at("remotes").at(0).at("problem").as_string().find("remote gone"),
            std::string::npos);
  const CommandRun config = run_werk({"config", "--remote", remote}, environment);
  EXPECT_NE(config.out.find(remote + "/v1"), std::string::npos) << config.out;
  EXPECT_EQ(peer.engines().count("spawned"), 0u);
  const CommandRun asked = run_werk({"run", "a", "hi", "--remote", remote}, environment);
  EXPECT_EQ(asked.status, 0) << asked.err;
  EXPECT_NE(asked.out.find("one two"), std::string::npos) << asked.out;
}

}  // namespace
}  // namespace werk::test
