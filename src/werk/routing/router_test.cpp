#include "werk/routing/router.hpp"

#include <gtest/gtest.h>

namespace werk::routing {
namespace {

class PlanningEngine final : public engine::Engine {
 public:
  PlanningEngine(std::string name, std::string format, std::optional<Error> refusal = {})
      : refusal_(std::move(refusal)) {
    info_.name = std::move(name);
    info_.formats = {std::move(format)};
  }
  const engine::EngineInfo& info() const override { return info_; }
  Result<engine::StartPlan> plan(const model::Manifest& manifest,
                                 const std::filesystem::path& folder) const override {
    if (refusal_) return fail(*refusal_);
    engine::StartPlan plan;
    plan.manifest = manifest;
    plan.model_folder = folder;
    return plan;
  }
  async::awaitable<Result<std::unique_ptr<engine::Runtime>>> start(engine::StartPlan,
                                                                   engine::StartObserver&,
                                                                   std::stop_token) override {
    co_return fail(ErrorCode::internal, "this engine only plans");
  }

 private:
  engine::EngineInfo info_;
  std::optional<Error> refusal_;
};

Catalogue installed() {
  model::InstalledModel model;
  model.manifest.id = "smollm2";
  model.manifest.aliases = {"small"};
  model.manifest.format = "gguf";
  return Catalogue({model});
}

TEST(Router, TakesTheFirstEngineThatReadsTheFormatAndSaysWhyNotTheOthers) {
  PlanningEngine first("onnx", "onnx-genai");
  PlanningEngine second("llama-cpu", "gguf");
  const Router router({&first, &second});
  const auto route = router.route(installed(), "small");
  ASSERT_TRUE(route);
  EXPECT_EQ(route->engine, &second);
  EXPECT_EQ(route->plan.manifest.id, "smollm2");
  ASSERT_EQ(route->rejected.size(), 1u);
  EXPECT_EQ(route->rejected[0].engine, "onnx");
}

TEST(Router, AnUnknownNameIsNotFoundWithNearNames) {
  PlanningEngine engine("llama-cpu", "gguf");
  const auto route = Router({&engine}).route(installed(), "smolm2");
  ASSERT_FALSE(route);
  EXPECT_EQ(route.error().code, ErrorCode::model_not_found);
  EXPECT_NE(route.error().message.find("smollm2"), std::string::npos);
}

TEST(Router, AWildcardRuleReachesItsModelButNeverHidesAnInstalledName) {
  PlanningEngine engine("llama-cpu", "gguf");
  const Router router({&engine},
                      {{"claude-*", "smollm2"}, {"gpt-4", "smollm2"}, {"small*", "absent"}});
  EXPECT_EQ(router.route(installed(), "claude-sonnet-9")->plan.manifest.id, "smollm2");
  EXPECT_EQ(router.route(installed(), "gpt-4")->plan.manifest.id, "smollm2");
  EXPECT_EQ(router.route(installed(), "small")->plan.manifest.id, "smollm2");
  EXPECT_FALSE(router.route(installed(), "gpt-45"));
  EXPECT_FALSE(router.route(installed(), "claude"));
}

TEST(Router, AnUnknownClaudeNameIsToldTheLineToAdd) {
  PlanningEngine engine("llama-cpu", "gguf");
  const auto route = Router({&engine}).route(installed(), "claude-opus-9");
  ASSERT_FALSE(route);
  EXPECT_NE(route.error().message.find("--alias 'claude-*=MODEL'"), std::string::npos);
}

TEST(Router, AnAliasThatLeadsNowhereIsToldAsSuch) {
  PlanningEngine engine("llama-cpu", "gguf");
  const auto route = Router({&engine}, {{"claude-*", "gone"}}).route(installed(), "claude-x");
  ASSERT_FALSE(route);
  EXPECT_EQ(route.error().code, ErrorCode::model_not_found);
  EXPECT_TRUE(route.error().message.starts_with(
      R"(the alias "claude-*" leads "claude-x" to "gone", which is not installed)"))
      << route.error().message;
  EXPECT_EQ(route.error().message.find("--alias"), std::string::npos);
}

TEST(Router, TheOnlyEnginesRefusalIsTheAnswer) {
  PlanningEngine engine("llama-cpu", "gguf", Error{ErrorCode::model_unusable, "context too large"});
  const auto route = Router({&engine}).route(installed(), "smollm2");
  ASSERT_FALSE(route);
  EXPECT_EQ(route.error().message, "context too large");
}

TEST(Router, AModelIsBoundToItsOwnEngines) {
  PlanningEngine nodes("llama-cpu", "gguf");
  PlanningEngine own("llama-cpu", "gguf");
  const Router router({&nodes}, {{"big", "smollm2"}}, {{"smollm2", {{&own}, {}}}});
  EXPECT_EQ(router.route(installed(), "smollm2")->engine, &own);
  EXPECT_EQ(router.route(installed(), "big")->engine, &own) << "by whatever name";
  const Router others({&nodes}, {}, {{"another", {{&own}, {}}}});
  EXPECT_EQ(others.route(installed(), "smollm2")->engine, &nodes);
}

TEST(Router, AModelWhoseOwnEngineIsMissingIsNotServedByTheNodes) {
  PlanningEngine nodes("llama-cpu", "gguf");
  const Router router({&nodes}, {}, {{"smollm2", {{}, {{"llama-cuda", "has no device"}}}}});
  const auto route = router.route(installed(), "smollm2");
  ASSERT_FALSE(route);
  EXPECT_EQ(route.error().code, ErrorCode::model_unusable);
  EXPECT_EQ(route.error().message, "no engine can serve \"smollm2\"; llama-cuda: has no device");
}

TEST(Router, WhatTheNodeLacksIsToldWhereNothingReadsTheFormat) {
  PlanningEngine other("onnx", "onnx-genai");
  const Router router({&other}, {}, {}, {{"llama-server", "there is none"}});
  const auto route = router.route(installed(), "smollm2");
  ASSERT_FALSE(route);
  EXPECT_EQ(route.error().code, ErrorCode::model_unusable);
  EXPECT_NE(route.error().message.find("llama-server: there is none; onnx: does not read"),
            std::string::npos)
      << route.error().message;
  PlanningEngine reads("own", "gguf");
  const auto served =
      Router({&reads}, {}, {}, {{"llama-server", "there is none"}}).route(installed(), "smollm2");
  ASSERT_TRUE(served);
  EXPECT_TRUE(served->rejected.empty());
}

TEST(Router, ARemotesModelGoesToItsRemoteAndNeitherCountsAgainstTheOther) {
  PlanningEngine local("llama-cpu", "gguf");
  PlanningEngine far("remote:far", "remote:far");
  PlanningEngine lab("remote:lab", "remote:lab");
  model::InstalledModel remote;
  remote.manifest.id = "qwen";
  remote.manifest.format = "remote:lab";
  std::vector<model::InstalledModel> models = installed().models();
  models.push_back(remote);
  const Catalogue catalogue(models);
  const Router router({&far, &local, &lab});
  const auto route = router.route(catalogue, "qwen");
  ASSERT_TRUE(route);
  EXPECT_EQ(route->engine, &lab);
  EXPECT_TRUE(route->rejected.empty());
  EXPECT_TRUE(router.route(catalogue, "smollm2")->rejected.empty());
}

}  // namespace
}  // namespace werk::routing
