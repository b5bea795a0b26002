#include "werk/engine/remote/listing.hpp"

#include <gtest/gtest.h>

namespace werk::engine::remote {
namespace {

PeerModel peer_model(std::string id) {
  PeerModel model;
  model.id = std::move(id);
  return model;
}

model::InstalledModel installed(std::string id, std::vector<std::string> aliases = {}) {
  model::InstalledModel model;
  model.manifest.id = std::move(id);
  model.manifest.aliases = std::move(aliases);
  return model;
}

using Names = std::vector<std::string>;

TEST(RemoteListing, AModelHasItsOwnNameAndTheLongerOneAsWell) {
  const auto listed = list_remotes({{"lab", {peer_model("Qwen/Qwen3-8B")}}}, {});
  ASSERT_EQ(listed.size(), 1u);
  const model::Manifest& manifest = listed.front().manifest;
  EXPECT_EQ(manifest.id, "Qwen/Qwen3-8B");
  EXPECT_EQ(manifest.aliases, Names{"lab/Qwen/Qwen3-8B"});
  EXPECT_EQ(manifest.name, "Qwen/Qwen3-8B");
  EXPECT_EQ(manifest.format, "remote:lab");
  EXPECT_EQ(model::remote_of(manifest), "lab");
}

TEST(RemoteListing, AnInstalledModelsNameOrAliasIsNotTaken) {
  const auto listed = list_remotes({{"lab", {peer_model("smollm2"), peer_model("small")}}},
                                   {installed("smollm2", {"small"})});
  ASSERT_EQ(listed.size(), 2u);
  EXPECT_EQ(listed[0].manifest.id, "lab/smollm2");
  EXPECT_TRUE(listed[0].manifest.aliases.empty());
  EXPECT_EQ(listed[0].manifest.name, "smollm2") << "on the wire it keeps its own";
  EXPECT_EQ(listed[1].manifest.id, "lab/small");
}

TEST(RemoteListing, TwoRemotesWithTheSameModelAreToldApart) {
  const auto listed = list_remotes(
      {{"lab", {peer_model("qwen"), peer_model("a")}}, {"home", {peer_model("qwen")}}}, {});
  ASSERT_EQ(listed.size(), 3u);
  EXPECT_EQ(listed[0].manifest.id, "lab/qwen");
  EXPECT_EQ(listed[1].manifest.id, "a");
  EXPECT_EQ(listed[2].manifest.id, "home/qwen");
}

TEST(RemoteListing, AnInstalledModelIsNoRemotes) {
  EXPECT_TRUE(model::remote_of(installed("smollm2").manifest).empty());
}

TEST(RemoteListing, TellsWhatThePeerToldAndNothingElse) {
  PeerModel model = peer_model("a");
  model.context_tokens = 4096;
  model.created = 1700000000;
  const model::Manifest manifest = remote_manifest("lab", model);
  EXPECT_EQ(manifest.training_context_tokens, 4096u);
  EXPECT_EQ(manifest.imported_at, "2023-11-14T22:13:20Z");
  EXPECT_TRUE(remote_manifest("lab", peer_model("b")).imported_at.empty());
}

}  // namespace
}  // namespace werk::engine::remote
