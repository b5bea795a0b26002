#include "werk/app/remote_models.hpp"

#include "tests/support/loop_fixture.hpp"
#include "tests/support/manual_clock.hpp"
#include "tests/support/scripted_server.hpp"

namespace werk::app {
namespace {

namespace remote = engine::remote;
using namespace std::chrono_literals;
using test::Reply;
using Names = std::vector<std::string>;

class RemoteModelsTest : public test::LoopFixture {
 protected:
  RemoteModelsTest() : lab_(executor()), home_(executor()) {
    lab_engine_ = engine_of("lab", lab_.listen_tcp());
    home_engine_ = engine_of("home", home_.listen_tcp());
    const std::vector<remote::RemoteEngine*> engines = {lab_engine_.get(), home_engine_.get()};
    models_ = std::make_unique<RemoteModels>(executor(), clock_, engines);
  }
  void TearDown() override {
    run(models_->end());
    run(lab_engine_->shut_down());
    run(home_engine_->shut_down());
    run(lab_.close());
    run(home_.close());
  }

  std::unique_ptr<remote::RemoteEngine> engine_of(std::string name, std::uint16_t port) {
    remote::RemoteSettings settings;
    settings.name = std::move(name);
    settings.url.host = "127.0.0.1";
    settings.url.port = port;
    return std::make_unique<remote::RemoteEngine>(executor(), clock_, std::move(settings));
  }
  static Reply page(const std::string& entries) {
    return Reply::whole(200, "application/json", "{\"data\":[" + entries + "]}");
  }
  Names listed() const {
    Names ids;
    for (const model::InstalledModel& model : models_->beside({})) ids.push_back(model.manifest.id);
    return ids;
  }
  std::size_t asked() const { return lab_.requests().size() + home_.requests().size(); }

  test::ManualClock clock_;
  test::ScriptedServer lab_;
  test::ScriptedServer home_;
  std::unique_ptr<remote::RemoteEngine> lab_engine_;
  std::unique_ptr<remote::RemoteEngine> home_engine_;
  std::unique_ptr<RemoteModels> models_;
};

TEST_F(RemoteModelsTest, TheStartListsWhatAnswersAndGoesOnWithoutWhatDoesNot) {
  lab_.reply(page(R"({"id":"a"},{"id":"b"})"));
  home_.refuse_next(1);
  const std::uint64_t before = models_->version();
  EXPECT_NE(before, 0u);
  run(models_->begin({}));
  EXPECT_EQ(listed(), (Names{"a", "b"}));
  EXPECT_NE(models_->version(), before);
}

TEST_F(RemoteModelsTest, ARemoteThatWasDownIsListedOnceItAnswers) {
  lab_.reply_always(page(R"({"id":"a"})"));
  home_.refuse_next(1);
  home_.reply_always(page(R"({"id":"h"})"));
  run(models_->begin({}));
  poll();
  const std::uint64_t before = models_->version();
  clock_.advance(30s);
  run_until([this, before] { return models_->version() != before; });
  EXPECT_EQ(listed(), (Names{"a", "h"}));
  EXPECT_EQ(lab_.requests().size(), 1u) << "the one that answers is asked less often";
}

TEST_F(RemoteModelsTest, WhatARemoteListsAnewIsSeenWithinMinutes) {
  lab_.reply(page(R"({"id":"a"})"));
  home_.reply_always(page(""));
  run(models_->begin({}));
  poll();
  lab_.reply(page(R"({"id":"a2"})"));
  const std::uint64_t before = models_->version();
  clock_.advance(5min);
  run_until([this, before] { return models_->version() != before; });
  EXPECT_EQ(listed(), Names{"a2"});
}

TEST_F(RemoteModelsTest, AnUnknownNameMakesThemLookAtOnceButNotTimeAndAgain) {
  lab_.reply_always(page(R"({"id":"a"})"));
  home_.reply_always(page(""));
  run(models_->begin({}));
  EXPECT_EQ(asked(), 2u);
  run(models_->look_for("new"));
  EXPECT_EQ(asked(), 2u) << "they looked a moment ago";
  clock_.advance(10s);
  run(models_->look_for("new"));
  run(models_->look_for("new"));
  EXPECT_EQ(asked(), 4u);
}

TEST_F(RemoteModelsTest, AnAnswerThatSaysTheSameIsNoNewVersion) {
  lab_.reply_always(page(R"({"id":"a"})"));
  home_.reply_always(page(""));
  run(models_->begin({}));
  const std::uint64_t before = models_->version();
  clock_.advance(10s);
  run(models_->look_for("new"));
  EXPECT_EQ(models_->version(), before);
}

}  // namespace
}  // namespace werk::app
