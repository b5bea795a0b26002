#include "werk/engine/remote/remote_engine.hpp"

#include "werk/engine/remote/remote_fixture.hpp"

namespace werk::engine::remote {
namespace {

using test::Reply;
using Names = std::vector<std::string>;

constexpr std::string_view kKey = "sk-very-secret-1234567890";

class RemoteEngineTest : public RemoteFixture {};

TEST_F(RemoteEngineTest, IsExternalAndKeysAreOfRemoteAndModel) {
  make(settings());
  EXPECT_EQ(engine_->info().name, "remote:lab");
  EXPECT_EQ(engine_->info().pool, "remote");
  EXPECT_EQ(engine_->info().ownership, Ownership::external);
  EXPECT_EQ(engine_->info().overlap, Overlap::native);
  EXPECT_EQ(plan("a").key, plan("a").key);
  EXPECT_NE(plan("a").key, plan("b").key);
  model::Manifest installed;
  installed.id = "a";
  EXPECT_FALSE(engine_->plan(installed, {}));
}

TEST_F(RemoteEngineTest, StartsWhereTheModelIsListedAndClaimsNothingThatItCantKnow) {
  make(settings());
  server_.reply(models_page(R"({"id":"a"},{"id":"b"})"));
  ASSERT_EQ(start("b"), "ready");
  const RuntimeFacts& facts = runtime_->facts();
  EXPECT_EQ(facts.slots, 0u);
  EXPECT_EQ(facts.context_tokens_per_slot, 0u);
  EXPECT_FALSE(facts.native_slots);
  EXPECT_FALSE(facts.pid);
  ASSERT_EQ(server_.requests().size(), 1u) << "a stranger is asked for nothing else";
  EXPECT_EQ(server_.requests()[0].line, "GET /v1/models HTTP/1.1");
  EXPECT_FALSE(runtime_->passthrough(Dialect::anthropic_messages));
  const auto target = runtime_->passthrough(Dialect::openai_chat);
  ASSERT_TRUE(target);
  EXPECT_EQ(target->host, "127.0.0.1");
  EXPECT_EQ(target->port, port_);
  EXPECT_EQ(target->path, "/v1/chat/completions");
  EXPECT_EQ(target->model_name, "b");
  EXPECT_EQ(target->ownership, Ownership::external);
  EXPECT_TRUE(target->tls_name.empty());
  EXPECT_TRUE(target->authorization.empty());
  EXPECT_TRUE(target->count_path.empty());
}

TEST_F(RemoteEngineTest, WhatThePeerTellsAndTheSettingsBoundAreFacts) {
  RemoteSettings bounded = settings();
  bounded.parallel = 3;
  bounded.silence = std::chrono::seconds(90);
  bounded.url.prefix = "/api/v1";
  make(std::move(bounded));
  server_.reply(models_page(R"({"id":"a","owned_by":"llamacpp","meta":{"n_ctx":4096}})"));
  ASSERT_EQ(start("a"), "ready");
  EXPECT_EQ(runtime_->facts().slots, 3u);
  EXPECT_EQ(runtime_->facts().context_tokens_per_slot, 4096u);
  EXPECT_EQ(server_.requests()[0].line, "GET /api/v1/models HTTP/1.1");
  const auto target = runtime_->passthrough(Dialect::openai_chat);
  EXPECT_EQ(target->path, "/api/v1/chat/completions");
  EXPECT_EQ(target->silence, std::chrono::seconds(90));
  EXPECT_EQ(target->count_path, "/api/v1/chat/completions/input_tokens");
  EXPECT_FALSE(target->profile.names_tools_as_objects) << "a llama-server is known by its models";
}

TEST_F(RemoteEngineTest, AModelThatThePeerDoesNotListIsNotFoundWithWhatItLists) {
  make(settings());
  server_.reply(models_page(R"({"id":"a"},{"id":"b"})"));
  EXPECT_EQ(start("c"), "model_not_found: remote lab does not serve c; it lists a, b");
}

TEST_F(RemoteEngineTest, AConfiguredNameReachesTheOnlyModelThatIsThere) {
  make(settings({"qwen"}));
  server_.reply(models_page(R"({"id":"/models/qwen3-8b"})"));
  ASSERT_EQ(start("qwen"), "ready");
  EXPECT_EQ(runtime_->passthrough(Dialect::openai_chat)->model_name, "/models/qwen3-8b");
}

TEST_F(RemoteEngineTest, AServerWithoutAListIsBelievedToHaveWhatIsConfigured) {
  make(settings({"qwen"}));
  server_.reply(Reply::whole(404, "text/plain", "no such page"));
  ASSERT_EQ(start("qwen"), "ready");
  EXPECT_EQ(runtime_->passthrough(Dialect::openai_chat)->model_name, "qwen");
}

TEST_F(RemoteEngineTest, AServerWithoutAListHasNothingThatCouldBeDiscovered) {
  make(settings());
  server_.reply(Reply::whole(404, "text/plain", "no such page"));
  EXPECT_EQ(look(), "remote lab answers with status 404: no such page");
}

TEST_F(RemoteEngineTest, APeerThatIsDownIsAFailedStartWithTheCause) {
  server_.refuse_next(1);
  make(settings());
  const std::string outcome = start("a");
  EXPECT_TRUE(outcome.starts_with("start_failed: remote lab: ")) << outcome;
}

TEST_F(RemoteEngineTest, APeerThatSaysNothingIsGivenUp) {
  make(settings());
  Reply silent;
  silent.end(Reply::End::hang);
  server_.reply(std::move(silent));
  LoopFixture::start(start_later("a"));
  run_until([this] { return !server_.requests().empty(); });
  clock_.advance(std::chrono::seconds(6));
  run_until([this] { return !outcome_.empty(); });
  EXPECT_TRUE(outcome_.starts_with("start_failed: remote lab (127.0.0.1:")) << outcome_;
  EXPECT_NE(outcome_.find("did not answer in time"), std::string::npos);
}

TEST_F(RemoteEngineTest, LooksListWhatThePeerHasAndNotWhatItHasFromElsewhere) {
  make(settings());
  server_.reply(models_page(R"({"id":"a"},{"id":"far","meta":{"remote":true}})"));
  EXPECT_EQ(look(), "looked");
  EXPECT_EQ(listed(), Names{"a"});
  server_.refuse_next(2);
  server_.drop_idle();
  run_until([this] { return server_.connections_open() == 0; });
  look();
  EXPECT_EQ(listed(), Names{"a"}) << "what it said last stands";
}

TEST_F(RemoteEngineTest, ConfiguredModelsAreListedWhateverThePeerSays) {
  make(settings({"a", "b"}));
  EXPECT_EQ(listed(), (Names{"a", "b"}));
  server_.reply(models_page(R"({"id":"b","max_model_len":512},{"id":"c"})"));
  look();
  EXPECT_EQ(listed(), (Names{"a", "b"}));
  EXPECT_EQ(engine_->listing().models[1].context_tokens, 512u);
}

TEST_F(RemoteEngineTest, ARedirectIsAnErrorThatNamesItsHostAloneAndTheKeyGoesNowhereElse) {
  RemoteSettings keyed = settings();
  keyed.key = kKey;
  keyed.key_env = "LAB_KEY";
  make(std::move(keyed));
  Reply redirect;
  redirect.send(
      "HTTP/1.1 307 Away\r\nLocation: http://user:pw@elsewhere.example/x?token=t\r\n"
      "Content-Length: 0\r\n\r\n");
  server_.reply(std::move(redirect));
  EXPECT_EQ(start("a"),
            "start_failed: remote lab redirects to elsewhere.example (status 307), which is not "
            "followed; set the url where it serves");
  EXPECT_EQ(server_.requests().size(), 1u);
}

TEST_F(RemoteEngineTest, TheKeyIsSentAndStandsInNoError) {
  RemoteSettings keyed = settings();
  keyed.key = kKey;
  keyed.key_env = "LAB_KEY";
  make(std::move(keyed));
  server_.reply(Reply::whole(401, "text/plain", "bad key " + std::string(kKey)));
  EXPECT_EQ(start("a"), "start_failed: remote lab refuses the key in LAB_KEY (status 401)");
  EXPECT_NE(server_.requests()[0].head.find("Authorization: Bearer " + std::string(kKey)),
            std::string::npos);
  server_.reply(Reply::whole(500, "text/plain", "no luck with " + std::string(kKey)));
  EXPECT_EQ(start("a"), "start_failed: remote lab answers with status 500: no luck with <key>");
  EXPECT_EQ(engine_->info().summary.find(kKey), std::string::npos);
  for (const std::string& word : plan("a").arguments) EXPECT_EQ(word.find(kKey), std::string::npos);
}

TEST_F(RemoteEngineTest, APeerThatWantsAKeyIsToldHowToGetOne) {
  make(settings());
  server_.reply(Reply::whole(403, "text/plain", ""));
  EXPECT_EQ(start("a"),
            "start_failed: remote lab wants a key (status 403): name the environment variable that "
            "holds it by key_env");
}

TEST_F(RemoteEngineTest, AnotherWerkIsKnownByItsModelsAndTellsItsSlots) {
  make(settings());
  server_.reply(models_page(R"({"id":"a","owned_by":"werk"})"));
  server_.reply(page(
      R"({"schema":1,"runtimes":[{"model":"a","state":"ready","slots":{"total":4,"busy":1}}]})"));
  ASSERT_EQ(start("a"), "ready");
  ASSERT_EQ(server_.requests().size(), 2u);
  EXPECT_EQ(server_.requests()[1].line, "GET /werk/v1/observability HTTP/1.1");
  EXPECT_EQ(runtime_->facts().native_slots, (NativeSlots{4, 1}));
  EXPECT_EQ(runtime_->facts().slots, 0u) << "what waits, waits there";
  const auto target = runtime_->passthrough(Dialect::anthropic_messages);
  ASSERT_TRUE(target);
  EXPECT_EQ(target->path, "/v1/messages");
  EXPECT_EQ(target->count_path, "/v1/messages/count_tokens");
}

TEST_F(RemoteEngineTest, AWerkThatHasNotLoadedTheModelHasSlotsThatNobodyKnows) {
  make(settings());
  server_.reply(models_page(R"({"id":"a","owned_by":"werk"})"));
  server_.reply(page(R"({"schema":1,"runtimes":[]})"));
  ASSERT_EQ(start("a"), "ready");
  EXPECT_FALSE(runtime_->facts().native_slots);
  EXPECT_TRUE(runtime_->passthrough(Dialect::anthropic_messages));
}

TEST_F(RemoteEngineTest, WhoIsSaidToBeAWerkMustBeOne) {
  RemoteSettings werk = settings();
  werk.kind = PeerKind::werk;
  make(std::move(werk));
  server_.reply(models_page(R"({"id":"a"})"));
  server_.reply(Reply::whole(404, "text/plain", ""));
  EXPECT_EQ(start("a"), "start_failed: remote lab answers with status 404");
}

TEST_F(RemoteEngineTest, WhoIsSaidToBeNoneIsNotAsked) {
  RemoteSettings plain = settings();
  plain.kind = PeerKind::openai;
  make(std::move(plain));
  server_.reply(models_page(R"({"id":"a","owned_by":"werk"})"));
  ASSERT_EQ(start("a"), "ready");
  EXPECT_EQ(server_.requests().size(), 1u);
  EXPECT_FALSE(runtime_->passthrough(Dialect::anthropic_messages));
}

}  // namespace
}  // namespace werk::engine::remote
