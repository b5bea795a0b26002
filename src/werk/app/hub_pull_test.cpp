// What a pull brings, and what is left of one that its disk or its person ends.
#include "werk/app/hub_test_fixture.hpp"

namespace werk::app {
namespace {

TEST_F(HubPullTest, BringsAModelWithSourceAndLicenceAndLeavesNothingElse) {
  ScriptedHub hub;
  offer(hub);
  pull_.aliases = {"tiny"};
  const auto pulled = pull();
  ASSERT_TRUE(pulled) << pulled.error().message;
  EXPECT_EQ(installed_bytes(), content_);
  const auto model = store().find("tiny");
  ASSERT_TRUE(model);
  EXPECT_EQ(model->manifest.id, kId);
  EXPECT_EQ(model->manifest.licence, "apache-2.0");
  EXPECT_EQ(model->manifest.source,
            hub.address() + "/org/Tiny-GGUF at " + std::string(test::kHubCommit));
  EXPECT_EQ(model->manifest.files.front().sha256, sha256_hex(content_));
  EXPECT_EQ(litter(), 0u);
  EXPECT_TRUE(waits_.empty());
}

TEST_F(HubPullTest, TooLittleSpaceIsToldBeforeAnythingIsFetched) {
  ScriptedHub hub;
  offer(hub);
  free_bytes_ = content_.size() - 1;
  const std::string told = error();
  EXPECT_NE(told.find("needs"), std::string::npos) << told;
  EXPECT_NE(told.find("are free"), std::string::npos) << told;
  EXPECT_NE(told.find("WERK_HOME"), std::string::npos) << told;
  EXPECT_TRUE(hub.requests_for("/resolve/").empty());
  EXPECT_EQ(litter(), 0u);
  free_bytes_ = content_.size();
  EXPECT_TRUE(pull());
}

TEST_F(HubPullTest, ADiskFullAtAnyStepKeepsWhatCameAndTheNextRunEndsWell) {
  ScriptedHub hub;
  offer(hub);
  int failures = 0;
  for (int step = 0;; ++step) {
    ASSERT_LT(step, 400);
    FailsAt hook(step, ENOSPC);
    around_.hook = &hook;
    const auto pulled = pull();
    around_.hook = nullptr;
    if (!hook.has_failed) break;
    ++failures;
    if (!pulled) {
      EXPECT_NE(pulled.error().message.find("No space left"), std::string::npos)
          << pulled.error().message;
      EXPECT_FALSE(store().find(kId));
      const auto again = pull();
      ASSERT_TRUE(again) << step << ": " << again.error().message;
    }
    EXPECT_EQ(installed_bytes(), content_) << step;
    EXPECT_EQ(litter(), 0u) << step;
    reset();
  }
  EXPECT_GT(failures, 20);
}

TEST_F(HubPullTest, DeathAtAnyStepLeavesNothingHalfAndTheNextRunEndsWell) {
  ScriptedHub hub;
  offer(hub);
  int deaths = 0;
  for (int step = 0;; ++step) {
    ASSERT_LT(step, 400);
    FailsAt hook(step, 0);
    around_.hook = &hook;
    const bool died = dies_pulling();
    around_.hook = nullptr;
    if (!died) break;
    ++deaths;
    const auto listing = store().list();
    ASSERT_TRUE(listing);
    EXPECT_TRUE(listing->broken.empty()) << step;
    const auto again = pull();
    ASSERT_TRUE(again) << step << ": " << again.error().message;
    EXPECT_EQ(installed_bytes(), content_) << step;
    reset();
  }
  EXPECT_GT(deaths, 20);
}

TEST_F(HubPullTest, ThePersonMayEndItAnyTimeAndIsToldHowToGoOn) {
  ScriptedHub hub;
  offer(hub);
  const std::size_t head = hub.answer_bytes(blob(), true) - content_.size();
  HubEvent held;
  held.hold_after = head + 4000;
  hub.next(blob(), held);
  // Asked with each piece: stops with the first that has come.
  around_.go_on = [this] {
    return downloads().empty() || fs::file_size(downloads()[0]) == 0 ? GoOn::yes : GoOn::stop;
  };
  const auto ended = pull();
  hub.release();
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code, ErrorCode::cancelled);
  EXPECT_NE(ended.error().message.find("the same command goes on"), std::string::npos)
      << ended.error().message;
  around_.go_on = [] { return GoOn::yes; };
  ASSERT_TRUE(pull());
  EXPECT_NE(hub.requests_for("/blob/").back().head.find("Range: bytes="), std::string::npos);
  EXPECT_EQ(installed_bytes(), content_);
}

TEST_F(HubPullTest, EndsWhileItWaitsToTryAgain) {
  ScriptedHub hub;
  offer(hub);
  hub.always("/tree/", answer(503));
  around_.wait = [](std::chrono::milliseconds) { return GoOn::stop; };
  const auto ended = pull();
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code, ErrorCode::cancelled);
  EXPECT_EQ(hub.requests_for("/tree/").size(), 1u);
}

TEST_F(HubPullTest, BringsASplitSetWholeFromAListingOfManyPages) {
  ScriptedHub hub;
  offer(hub);
  for (const std::uint16_t number : {1, 2, 3}) {
    test::GgufBuilder part;
    part.add_string("general.architecture", "llama");
    part.add_u16("split.no", static_cast<std::uint16_t>(number - 1));
    part.add_u16("split.count", 3);
    part.add_u32("llama.context_length", 512);
    part.add_tensor("t" + std::to_string(number), {32}, [](std::uint64_t) { return 1.0F; });
    hub.add_file(fmt::format("Q6_K/Tiny-Q6_K-0000{}-of-00003.gguf", number), part.bytes());
  }
  hub.set_page_entries(1);
  pull_.file = "Tiny-Q6_K-00002-of-00003.gguf";
  const auto pulled = pull();
  ASSERT_TRUE(pulled) << pulled.error().message;
  EXPECT_EQ(hub.requests_for("/tree/").size(), 5u);
  const auto model = store().find("org/Tiny-GGUF:Q6_K");
  ASSERT_TRUE(model);
  EXPECT_EQ(model->manifest.files.size(), 3u);
  EXPECT_EQ(model->manifest.parameters, 96u);
  EXPECT_EQ(litter(), 0u);
}

TEST_F(HubPullTest, BringsTheProjectorOfItsModel) {
  ScriptedHub hub;
  offer(hub);
  hub.add_file("mmproj-F16.gguf", test::tiny_projector());
  hub.add_file("x/Tiny-Q8_0.gguf", test::tiny_gguf());
  pull_.name.quantization = "q8_0";
  const auto pulled = pull();
  ASSERT_TRUE(pulled) << pulled.error().message;
  const auto model = store().find("org/Tiny-GGUF:Q8_0");
  ASSERT_TRUE(model);
  EXPECT_TRUE(model->projector_path().has_value());
  EXPECT_EQ(litter(), 0u);
}

TEST_F(HubPullTest, WhatIsInstalledAlreadyIsNotFetchedAgain) {
  ScriptedHub hub;
  offer(hub);
  ASSERT_TRUE(pull());
  const auto again = pull();
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(*again, std::string(kId) + " is installed");
  EXPECT_EQ(hub.requests_for("/blob/").size(), 1u);
}

TEST_F(HubPullTest, AnIdOfAnotherModelIsNeverOverwritten) {
  ScriptedHub hub;
  offer(hub);
  pull_.id = "mine";
  ASSERT_TRUE(pull());
  hub.add_file("Other-Q8_0.gguf", small_model("other"));
  pull_.name.quantization = "Q8_0";
  const auto refused = pull();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::conflict);
  EXPECT_NE(refused.error().message.find("--name"), std::string::npos);
  EXPECT_EQ(installed_bytes("mine"), content_);
  pull_.id = "other";
  pull_.aliases = {"mine"};
  EXPECT_EQ(pull().error().code, ErrorCode::conflict);
  EXPECT_EQ(hub.requests_for("/blob/").size(), 1u) << "names are looked at before files come";
  pull_.id = "mine";
  pull_.if_missing = IfMissing::yes;
  const std::size_t before = hub.requests().size();
  EXPECT_TRUE(pull());
  EXPECT_EQ(hub.requests().size(), before) << "what is there needs no network";
  pull_.id.clear();
  pull_.aliases.clear();
  pull_.name.quantization = "q4_k_m";
  EXPECT_TRUE(pull());
  const std::size_t fetched = hub.requests().size();
  EXPECT_TRUE(pull());
  EXPECT_EQ(hub.requests().size(), fetched) << "nor does what is named with its quantization";
}

TEST_F(HubPullTest, OddNamesAreRefusedWithoutANetwork) {
  pull_.hub.endpoint = "http://127.0.0.1:1";
  pull_.id = "../x";
  EXPECT_EQ(pull().error().code, ErrorCode::invalid_request);
  pull_.id = "a";
  pull_.aliases = {""};
  EXPECT_EQ(pull().error().code, ErrorCode::invalid_request);
  pull_.aliases.clear();
  pull_.revision = "..";
  EXPECT_EQ(pull().error().code, ErrorCode::invalid_request);
}

TEST_F(HubPullTest, WhatIsNoModelAfterAllStaysWhereItIsTold) {
  ScriptedHub hub;
  offer(hub);
  hub.add_file(std::string(kFile), "GGUF, it says");
  const std::string told = error();
  EXPECT_NE(told.find("the files are whole, in"), std::string::npos) << told;
  EXPECT_EQ(downloads().size(), 1u);
}

}  // namespace
}  // namespace werk::app
