#include "werk/engine/remote/pages.hpp"

#include <gtest/gtest.h>

namespace werk::engine::remote {
namespace {

TEST(ModelsPage, TellsIdsOwnersAndContextsUnderWhateverNameTheyHave) {
  const auto models = read_models_page(R"({"object":"list","data":[
    {"id":"Qwen/Qwen3-8B","object":"model","created":1700000000,"owned_by":"vllm",
     "max_model_len":40960},
    {"id":"small","owned_by":"llamacpp","meta":{"n_ctx":4096,"n_ctx_train":8192}},
    {"id":"routed","context_length":200000},
    {"id":"plain"}]})");
  ASSERT_TRUE(models);
  ASSERT_EQ(models->size(), 4u);
  EXPECT_EQ((*models)[0].id, "Qwen/Qwen3-8B");
  EXPECT_EQ((*models)[0].owned_by, "vllm");
  EXPECT_EQ((*models)[0].created, 1700000000);
  EXPECT_EQ((*models)[0].context_tokens, 40960u);
  EXPECT_EQ((*models)[1].context_tokens, 4096u);
  EXPECT_EQ((*models)[2].context_tokens, 200000u);
  EXPECT_EQ((*models)[3].context_tokens, 0u) << "unknown";
}

TEST(ModelsPage, KnowsWhatThePeerHasFromElsewhere) {
  const auto models = read_models_page(
      R"({"data":[{"id":"a","meta":{"remote":true}},{"id":"b","meta":{"remote":false}}]})");
  ASSERT_TRUE(models);
  EXPECT_EQ((*models)[0].place, PeerModel::Place::elsewhere);
  EXPECT_EQ((*models)[1].place, PeerModel::Place::its_own);
}

TEST(ModelsPage, OddEntriesAreLeftOutAndABareListIsOne) {
  const auto models =
      read_models_page(R"([{"id":"a"},{"id":"a"},{"id":""},{"id":7},"b",{"id":"x\ny"},{}])");
  ASSERT_TRUE(models);
  ASSERT_EQ(models->size(), 1u);
  EXPECT_EQ(models->front().id, "a");
}

TEST(ModelsPage, WhatIsNoListOfModelsIsAnError) {
  for (const std::string_view body : {"", "<html>", "{}", R"({"data":{}})", "7", "{\"data\":["})
    EXPECT_FALSE(read_models_page(body)) << body;
}

TEST(ModelsPage, IsBounded) {
  std::string page = R"({"data":[)";
  for (std::size_t i = 0; i < kModelsMax + 5; ++i)
    page += (i == 0 ? "{\"id\":\"m" : ",{\"id\":\"m") + std::to_string(i) + "\"}";
  const auto models = read_models_page(page + "]}");
  ASSERT_TRUE(models);
  EXPECT_EQ(models->size(), kModelsMax);
}

TEST(Observability, SumsTheSlotsOfTheModelsReadyRuntimes) {
  const std::string_view page = R"({"schema":1,"runtimes":[
    {"model":"a","state":"ready","slots":{"total":4,"busy":1}},
    {"model":"a","state":"ready","slots":{"total":2,"busy":2}},
    {"model":"a","state":"starting","slots":{"total":8,"busy":0}},
    {"model":"b","state":"ready","slots":{"total":null,"busy":3}}]})";
  const auto of_a = read_observability(page, "a");
  ASSERT_TRUE(of_a && *of_a);
  EXPECT_EQ(**of_a, (NativeSlots{6, 3}));
  const auto of_b = read_observability(page, "b");
  ASSERT_TRUE(of_b);
  EXPECT_FALSE(*of_b) << "what the peer doesn't know is not known here either";
  const auto of_c = read_observability(page, "c");
  ASSERT_TRUE(of_c);
  EXPECT_FALSE(*of_c) << "not loaded there";
}

TEST(Observability, WhatIsNoWerksPageIsAnError) {
  for (const std::string_view body : {"", "{}", R"({"runtimes":[]})", R"({"schema":1})", "[]"})
    EXPECT_FALSE(read_observability(body, "a")) << body;
}

}  // namespace
}  // namespace werk::engine::remote
