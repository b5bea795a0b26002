#include "werk/engine/remote/stand_in.hpp"

#include <gtest/gtest.h>

#include "werk/engine/remote/remote_fixture.hpp"

namespace werk::engine::remote {
namespace {

model::Manifest installed(const std::string& id, std::vector<std::string> aliases = {}) {
  model::Manifest manifest;
  manifest.id = id;
  manifest.aliases = std::move(aliases);
  manifest.format = "safetensors";
  return manifest;
}

std::vector<PeerModel> served(const std::vector<std::string>& ids) {
  std::vector<PeerModel> models;
  for (const std::string& id : ids) {
    PeerModel model;
    model.id = id;
    models.push_back(std::move(model));
  }
  return models;
}

StandInSettings vllm(std::optional<std::string> model = {}) {
  return {"vllm", {"safetensors"}, std::move(model), "WERK_VLLM_MODEL"};
}

std::string chosen(const StandInSettings& settings, const model::Manifest& manifest,
                   const std::vector<std::string>& ids) {
  const auto model = choose_model(settings, "the vllm at host:1", manifest, served(ids));
  return model ? model->id : model.error().message;
}

TEST(StandInChoice, TheNamedOneElseTheSameNameElseTheOnlyOneElseTheListIsTold) {
  const model::Manifest m = installed("m", {"Org/M"});
  EXPECT_EQ(chosen(vllm("b"), m, {"a", "b", "m"}), "b");
  EXPECT_EQ(chosen(vllm(), m, {"a", "m"}), "m");
  EXPECT_EQ(chosen(vllm(), m, {"a", "Org/M"}), "Org/M");
  EXPECT_EQ(chosen(vllm(), m, {"a"}), "a");
  EXPECT_EQ(chosen(vllm(), m, {"a", "b"}),
            "the vllm at host:1 serves no m; it lists a, b, and WERK_VLLM_MODEL says which of them "
            "is meant");
  EXPECT_EQ(chosen(vllm(), m, {}),
            "the vllm at host:1 serves no m; it lists no model at all, and WERK_VLLM_MODEL says "
            "which of them is meant");
  EXPECT_EQ(chosen(vllm("c"), m, {"a"}),
            "WERK_VLLM_MODEL names c, which the vllm at host:1 does not serve; it lists a");
}

class StandInTest : public RemoteFixture {
 protected:
  void TearDown() override {
    if (runtime_) run(runtime_->stop({}));
    runtime_.reset();
    if (stand_in_) run(stand_in_->shut_down());
    RemoteFixture::TearDown();
  }
  std::string begin(const model::Manifest& manifest) {
    run(begin_into(*stand_in_->plan(manifest, {})));
    return outcome_;
  }
  async::awaitable<void> begin_into(StartPlan plan) {
    struct Deaf final : StartObserver {
      void progressed(std::string_view) override {}
    } deaf;
    auto started = co_await stand_in_->start(std::move(plan), deaf, std::stop_token());
    if (started) runtime_ = std::move(*started);
    outcome_ = started ? "ready" : started.error().message;
  }

  std::unique_ptr<StandIn> stand_in_;
};

TEST_F(StandInTest, CallsForAnInstalledModelGoToTheServersOwnAndAreCountedAsVllmDoes) {
  stand_in_ = std::make_unique<StandIn>(executor(), clock_, vllm(), settings());
  EXPECT_EQ(stand_in_->info().name, "vllm");
  EXPECT_EQ(stand_in_->info().ownership, Ownership::external);
  EXPECT_EQ(stand_in_->info().prefix_caching, PrefixCachingUse::theirs);
  const std::string page = R"({"id":"theirs","owned_by":"vllm","max_model_len":2048})";
  server_.reply(models_page(page));
  server_.reply(models_page(page));
  ASSERT_EQ(begin(installed("m")), "ready");
  EXPECT_EQ(runtime_->facts().slots, 0u);
  EXPECT_EQ(runtime_->facts().context_tokens_per_slot, 2048u);
  const auto target = runtime_->passthrough(Dialect::openai_chat);
  ASSERT_TRUE(target);
  EXPECT_EQ(target->model_name, "theirs");
  EXPECT_EQ(target->count_path, "/tokenize");
  EXPECT_EQ(target->count_member, "count");
  EXPECT_EQ(target->ownership, Ownership::external);
}

TEST_F(StandInTest, AServerThatIsAwayIsAStartThatMaySucceedLater) {
  stand_in_ = std::make_unique<StandIn>(executor(), clock_, vllm(), settings());
  server_.reply(test::Reply::whole(502, "text/plain", "nobody"));
  EXPECT_NE(begin(installed("m")), "ready");
  EXPECT_EQ(runtime_, nullptr);
}

}  // namespace
}  // namespace werk::engine::remote
