// Pulling from a hub and over a network that fail in every way they can.
#include "werk/app/hub_test_fixture.hpp"

namespace werk::app {
namespace {

TEST_F(HubPullTest, ComesOverTlsOnlyFromWhoIsTrusted) {
  ScriptedHub hub(test::HubWire::tls);
  offer(hub);
  const std::string refused = error();
  EXPECT_NE(refused.find("SSL_CERT_FILE"), std::string::npos) << refused;
  EXPECT_TRUE(hub.requests().empty()) << "nothing may be said before the other side is known";
  EXPECT_TRUE(waits_.empty()) << "another try is of no use";
  pull_.hub.ca_file = hub.certificate();
  const auto pulled = pull();
  ASSERT_TRUE(pulled) << pulled.error().message;
  EXPECT_EQ(installed_bytes(), content_);
}

TEST_F(HubPullTest, GivesItsTokenToTheHubAloneAndNeverToARedirectsHost) {
  for (const test::HubWire wire : {test::HubWire::plain, test::HubWire::tls}) {
    ScriptedHub hub(wire);
    offer(hub);
    hub.require_token("hf_secret");
    pull_.hub.token = "hf_secret";
    if (wire == test::HubWire::tls) pull_.hub.ca_file = hub.certificate();
    ASSERT_TRUE(pull());
    std::size_t at_content_host = 0;
    for (const test::HubRequest& request : hub.requests()) {
      EXPECT_EQ(request.has_token(), !request.at_content_host) << request.head;
      if (request.at_content_host) ++at_content_host;
    }
    EXPECT_EQ(at_content_host, 1u);
    EXPECT_EQ(said_.find("hf_secret"), std::string::npos);
    reset();
  }
}

TEST_F(HubPullTest, IsSentOnWithinTheHubWithItsToken) {
  ScriptedHub hub;
  offer(hub);
  hub.require_token("t");
  pull_.hub.token = "t";
  pull_.name.repository = "org/Old-Name";
  hub.next("/api/models/org/Old-Name/revision",
           answer(307, {"Location: " + test::hub_revision_target()}));
  hub.next("/api/models/org/Old-Name/tree",
           answer(307, {"Location: " + test::hub_tree_target() + "?recursive=true"}));
  hub.next("/org/Old-Name/resolve", answer(307, {"Location: " + test::hub_file_target(kFile)}));
  const auto pulled = pull();
  ASSERT_TRUE(pulled) << pulled.error().message;
  EXPECT_EQ(installed_bytes("org/Old-Name:Q4_K_M"), content_);
}

TEST_F(HubPullTest, FollowsNoRedirectToPlainTextNorWithoutEnd) {
  ScriptedHub hub(test::HubWire::tls);
  ScriptedHub plain;
  offer(hub);
  pull_.hub.ca_file = hub.certificate();
  pull_.hub.token = "t";
  hub.next("/resolve/", answer(302, {"Location: " + plain.address() + "/x"}));
  EXPECT_NE(error().find("without encryption"), std::string::npos);
  EXPECT_TRUE(plain.requests().empty());
  hub.next("/resolve/", answer(302, {"Location: file:///etc/passwd"}));
  EXPECT_NE(error().find("could not be fetched"), std::string::npos);
  hub.next("/resolve/", answer(302));
  EXPECT_NE(error().find("leads nowhere"), std::string::npos);
  hub.always("/resolve/", answer(302, {"Location: /org/resolve/again"}));
  EXPECT_NE(error().find("more than 10 redirects"), std::string::npos);
}

TEST_F(HubPullTest, SurvivesACutOfEveryAnswerAtEveryPart) {
  ScriptedHub hub;
  offer(hub);
  const std::vector<std::pair<std::string, bool>> targets = {{test::hub_revision_target(), false},
                                                             {test::hub_tree_target(), false},
                                                             {test::hub_file_target(kFile), false},
                                                             {blob(), true}};
  std::size_t cuts = 0;
  for (const auto& [target, at_content_host] : targets) {
    const std::size_t whole = hub.answer_bytes(target, at_content_host);
    std::vector<std::size_t> places = {0, 9, 20, whole / 2, whole - 1};
    if (at_content_host) {
      const std::size_t head = whole - content_.size();
      places.insert(places.end(), {1, head / 2, head - 2, head - 1, head, head + 1});
    }
    for (const std::size_t at : places) {
      hub.next(target, cut(at));
      const auto pulled = pull();
      ASSERT_TRUE(pulled) << target << " cut at " << at << ": " << pulled.error().message;
      EXPECT_EQ(installed_bytes(), content_);
      EXPECT_EQ(litter(), 0u);
      // A redirect is whole once its head is.
      cuts += waits_.size();
      reset();
    }
  }
  EXPECT_GE(cuts, 15u);
}

TEST_F(HubPullTest, SurvivesCutsUnderTlsToo) {
  ScriptedHub hub(test::HubWire::tls);
  offer(hub);
  pull_.hub.ca_file = hub.certificate();
  const std::size_t head = hub.answer_bytes(blob(), true) - content_.size();
  for (const std::size_t at :
       {std::size_t{0}, head, head + 16 * 1024, head + content_.size() - 1}) {
    hub.next(test::hub_tree_target(), cut(20));
    hub.next(blob(), cut(at));
    const auto pulled = pull();
    ASSERT_TRUE(pulled) << at << ": " << pulled.error().message;
    EXPECT_EQ(installed_bytes(), content_);
    EXPECT_EQ(litter(), 0u);
    EXPECT_FALSE(waits_.empty());
    reset();
  }
}

TEST_F(HubPullTest, AnEndpointThatSpeaksNoTlsIsToldAtOnce) {
  ScriptedHub hub;
  offer(hub);
  pull_.hub.endpoint.replace(0, 4, "https");
  EXPECT_NE(error().find("HF_ENDPOINT"), std::string::npos);
  EXPECT_TRUE(waits_.empty());
}

TEST_F(HubPullTest, GoesOnByRangeWhereItWasCut) {
  ScriptedHub hub;
  offer(hub);
  const std::size_t head = hub.answer_bytes(blob(), true) - content_.size();
  hub.next(blob(), cut(head + 1000));
  hub.next(blob(), cut(0));
  ASSERT_TRUE(pull());
  const auto asked = hub.requests_for("/blob/");
  ASSERT_EQ(asked.size(), 3u);
  EXPECT_EQ(asked[0].head.find("Range:"), std::string::npos);
  EXPECT_NE(asked[1].head.find("Range: bytes=1000-\r\n"), std::string::npos) << asked[1].head;
  EXPECT_NE(asked[2].head.find("Range: bytes=1000-\r\n"), std::string::npos);
  EXPECT_EQ(hub.requests_for("/resolve/").size(), 3u) << "a signed address may have run out";
  EXPECT_EQ(installed_bytes(), content_);
}

TEST_F(HubPullTest, ANewRunGoesOnWithWhatAnEarlierOneLeft) {
  ScriptedHub hub;
  offer(hub);
  const std::size_t head = hub.answer_bytes(blob(), true) - content_.size();
  hub.next(blob(), cut(head + 2000));
  hub.always("/blob/", answer(503));
  const std::string told = error();
  EXPECT_NE(told.find("2.0 kB of"), std::string::npos) << told;
  EXPECT_NE(told.find("the same command goes on from there"), std::string::npos) << told;
  ASSERT_EQ(downloads().size(), 1u);
  ScriptedHub again;
  offer(again);
  ASSERT_TRUE(pull());
  EXPECT_NE(again.requests_for("/blob/")[0].head.find("bytes=2000-"), std::string::npos);
  EXPECT_EQ(installed_bytes(), content_);
  EXPECT_EQ(litter(), 0u);
}

TEST_F(HubPullTest, BeginsAnewWhereRangesAreIgnoredRefusedOrWrong) {
  for (const auto ranges :
       {test::HubRanges::ignored, test::HubRanges::refused, test::HubRanges::shifted}) {
    ScriptedHub hub;
    offer(hub);
    hub.set_ranges(ranges);
    const std::size_t head = hub.answer_bytes(blob(), true) - content_.size();
    hub.next(blob(), cut(head + 3000));
    const auto pulled = pull();
    ASSERT_TRUE(pulled) << pulled.error().message;
    EXPECT_EQ(installed_bytes(), content_);
    reset();
  }
}

TEST_F(HubPullTest, AWrongDigestDeletesWhatCame) {
  ScriptedHub hub;
  offer(hub);
  hub.list_wrongly(std::string(kFile), std::string(64, 'd'), content_.size());
  const std::string told = error();
  EXPECT_NE(told.find(std::string(64, 'd')), std::string::npos) << told;
  EXPECT_NE(told.find("deleted"), std::string::npos) << told;
  EXPECT_FALSE(store().find(kId));
  EXPECT_EQ(litter(), 0u);
}

TEST_F(HubPullTest, AnEarlierPartOfAnotherFileIsFoundOutByTheDigest) {
  ScriptedHub hub;
  offer(hub);
  const std::size_t head = hub.answer_bytes(blob(), true) - content_.size();
  hub.next(blob(), cut(head + 2000));
  hub.next("/resolve/", HubEvent());
  hub.next("/resolve/", answer(403));
  error();
  ASSERT_EQ(downloads().size(), 1u);
  std::ofstream(downloads()[0], std::ios::binary) << std::string(2000, 'x');
  EXPECT_NE(error().find("damaged"), std::string::npos);
  EXPECT_EQ(litter(), 0u);
  EXPECT_TRUE(pull()) << "and the next run is none the worse";
}

TEST_F(HubPullTest, AHubWhoseSizesDisagreeIsNotBelieved) {
  for (const int difference : {-10, 10}) {
    ScriptedHub hub;
    offer(hub);
    hub.list_wrongly(std::string(kFile), sha256_hex(content_),
                     content_.size() + static_cast<std::size_t>(difference));
    const std::string told = error();
    EXPECT_NE(told.find("the hub lists"), std::string::npos) << told;
    EXPECT_TRUE(waits_.empty());
    EXPECT_EQ(litter(), 0u);
    reset();
  }
}

TEST_F(HubPullTest, ABodyWithoutALengthThatIsLongerOrShorterIsNotBelieved) {
  ScriptedHub hub;
  offer(hub);
  HubEvent chunked = answer(200, {"Transfer-Encoding: chunked"});
  chunked.body = fmt::format("{:x}\r\n{}!\r\n0\r\n\r\n", content_.size() + 1, content_);
  hub.next("/blob/", chunked);
  EXPECT_NE(error().find("the hub lists"), std::string::npos);
  reset();
  chunked.body = "5\r\nfirst\r\n0\r\n\r\n";
  hub.next("/blob/", chunked);
  hub.always("/blob/", answer(206, {"Content-Range: bytes 5-9/*"}));
  EXPECT_NE(error().find("ended after 5 of"), std::string::npos);
  EXPECT_EQ(waits_.size(), 5u) << "what gives nothing is tried so many times";
}

TEST_F(HubPullTest, AnAnswerThatFallsSilentIsCutAndAskedForAgain) {
  ScriptedHub hub;
  offer(hub);
  patience_.silence = 1s;
  HubEvent held;
  held.hold_after = hub.answer_bytes(blob(), true) - 1;
  hub.next("/blob/", held);
  const auto pulled = pull();
  hub.release();
  ASSERT_TRUE(pulled) << pulled.error().message;
  EXPECT_EQ(hub.requests_for("/blob/").size(), 2u);
  EXPECT_EQ(installed_bytes(), content_);
}

TEST_F(HubPullTest, OtherContentThanListedIsRefusedBeforeItComes) {
  ScriptedHub hub;
  offer(hub);
  hub.next("/resolve/", answer(302, {"Location: " + hub.content_address() + blob(),
                                     "X-Linked-Etag: \"" + std::string(64, 'e') + "\""}));
  EXPECT_NE(error().find(std::string(64, 'e')), std::string::npos);
  EXPECT_EQ(litter(), 0u);
}

TEST_F(HubPullTest, RefusalsSayWhatToDo) {
  struct Case {
    HubEvent event;
    const char* token;
    std::vector<const char*> words;
  };
  const std::vector<Case> cases = {
      {answer(401, {"X-Error-Message: Invalid username or password."}),
       "",
       {"without a token", "HF_TOKEN", "spelling", "Invalid username"}},
      {answer(401), "t", {"the token", "HF_TOKEN"}},
      {answer(403, {"X-Error-Code: GatedRepo", "X-Error-Message: Access is restricted"}),
       "t",
       {"gated", "accept its terms at", "/org/Tiny-GGUF", "HF_TOKEN", "Access is restricted"}},
      {answer(401, {"X-Error-Code: GatedRepo"}), "", {"gated", "accept its terms"}},
      {answer(404, {"X-Error-Code: RepoNotFound"}), "", {"no repository org/Tiny-GGUF"}},
      {answer(404, {"X-Error-Code: RevisionNotFound"}), "", {"no revision 'main'"}},
      {answer(400), "", {"answers 400"}},
  };
  for (const Case& one : cases) {
    ScriptedHub hub;
    offer(hub);
    pull_.hub.token = one.token;
    hub.always("/revision/", one.event);
    const std::string told = error();
    for (const char* word : one.words) {
      EXPECT_NE(told.find(word), std::string::npos) << word << " in: " << told;
    }
    EXPECT_TRUE(waits_.empty()) << told;
    EXPECT_EQ(hub.requests_for("/revision/").size(), 1u);
    EXPECT_EQ(litter(), 0u);
  }
}

TEST_F(HubPullTest, AMistypedRepositoryIsToldWithNearOnes) {
  ScriptedHub hub;
  offer(hub);
  HubEvent found = answer(200);
  found.body = R"([{"id":"org/Other-Model-GGUF"},{"id":"org/Tiny-GGUF"}])";
  hub.next("/api/models?author=org&", found);
  pull_.name.repository = "org/Tiny-GUFF";
  const std::string told = error();
  EXPECT_NE(told.find("did you mean hf:org/Tiny-GGUF?"), std::string::npos) << told;
  HubEvent none = answer(200);
  none.body = "[]";
  hub.next("/api/models?author=ogr&", none);
  hub.next("/api/models?search=Tiny-GGUF&", found);
  pull_.name.repository = "ogr/Tiny-GGUF";
  const std::string owner = error();
  EXPECT_NE(owner.find("did you mean hf:org/Tiny-GGUF"), std::string::npos) << owner;
  EXPECT_EQ(error().find("did you mean"), std::string::npos) << "a hub that can't search";
  EXPECT_TRUE(waits_.empty());
}

TEST_F(HubPullTest, AGatedFileOfAnOpenListingIsToldAsGated) {
  ScriptedHub hub;
  offer(hub);
  hub.always("/resolve/", answer(403, {"X-Error-Code: GatedRepo"}));
  EXPECT_NE(error().find("accept its terms"), std::string::npos);
  EXPECT_TRUE(waits_.empty());
}

TEST_F(HubPullTest, TooManyRequestsAreRepeatedWhenTheHubSays) {
  ScriptedHub hub;
  offer(hub);
  hub.next("/revision/", answer(429, {"Retry-After: 17"}));
  hub.next("/tree/", answer(429, {"RateLimit: \"api\";r=0;t=23"}));
  hub.next("/resolve/", answer(503, {"Retry-After: 5"}));
  hub.next("/blob/", answer(500));
  ASSERT_TRUE(pull());
  EXPECT_EQ(waits_, (std::vector<std::chrono::milliseconds>{17s, 23s, 5s, 2s}));
  EXPECT_NE(said_.find("trying again in 17 s"), std::string::npos) << said_;
}

TEST_F(HubPullTest, TooManyRequestsForGoodAreAnErrorAfterBoundedTries) {
  ScriptedHub hub;
  offer(hub);
  hub.always("/revision/", answer(429, {"Retry-After: 2"}));
  const std::string told = error();
  EXPECT_NE(told.find("asks to wait 2 s"), std::string::npos) << told;
  EXPECT_NE(told.find("HF_TOKEN"), std::string::npos) << told;
  EXPECT_EQ(hub.requests().size(), 6u);
  EXPECT_EQ(waits_.size(), 5u);
  ScriptedHub slow;
  offer(slow);
  waits_.clear();
  slow.always("/revision/", answer(429, {"Retry-After: 86400"}));
  EXPECT_NE(error().find("86400 s"), std::string::npos);
  EXPECT_TRUE(waits_.empty()) << "nobody waits for a day";
}

TEST_F(HubPullTest, AHubThatIsNotThereIsToldAtOnce) {
  {
    ScriptedHub hub;
    offer(hub);
  }
  const std::string told = error();
  EXPECT_NE(told.find("HF_ENDPOINT"), std::string::npos) << told;
  EXPECT_NE(told.find("proxy"), std::string::npos) << told;
  EXPECT_TRUE(waits_.empty());
}

TEST_F(HubPullTest, AnAnswerThatIsNoHubsNamesTheEndpoint) {
  ScriptedHub hub;
  offer(hub);
  HubEvent page = answer(200);
  page.body = "<html>sign in to this network</html>";
  hub.always("/revision/", page);
  EXPECT_NE(error().find("HF_ENDPOINT"), std::string::npos);
}

TEST_F(HubPullTest, AFileWithoutAListedDigestComesWholeOrNotAtAll) {
  ScriptedHub hub;
  offer(hub);
  hub.list_without_digest(std::string(kFile));
  const std::size_t head = hub.answer_bytes(blob(), true) - content_.size();
  hub.next(blob(), cut(head + 1000));
  hub.next("/resolve/", HubEvent());
  hub.next("/resolve/", answer(404));
  error();
  ASSERT_TRUE(pull());
  EXPECT_EQ(hub.requests_for("/blob/").back().head.find("Range:"), std::string::npos)
      << "nothing would tell whether two parts belong together";
  EXPECT_EQ(installed_bytes(), content_);
}

}  // namespace
}  // namespace werk::app
