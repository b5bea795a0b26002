#include "werk/model/manifest.hpp"

#include <gtest/gtest.h>

#include <boost/json.hpp>

namespace werk::model {
namespace {

namespace json = boost::json;

ManifestFile weights() {
  return {FileRole::weights, "files/m.gguf", 12, std::string(64, 'a'), false, 0};
}

Manifest sample() {
  Manifest manifest;
  manifest.id = "org/model:Q4 \xC3\xBC";
  manifest.aliases = {"m", "model"};
  manifest.name = "Say \"hi\" \\";
  manifest.architecture = "llama";
  manifest.quantization = "Q4_1";
  manifest.parameters = ~std::uint64_t{0};
  manifest.training_context_tokens = 8192;
  manifest.shape = {30, 576, 9, 90, 64, 64};
  manifest.chat_template = {true, false, true};
  manifest.capabilities = {true, true, false, false, true, false};
  manifest.files = {weights(),
                    {FileRole::projector, "/m/p.gguf", 7, std::string(64, 'b'), true, -5}};
  manifest.files[0].origin = "/from/w.gguf";
  manifest.files[0].modified_ns = 6;
  manifest.source = "somewhere";
  manifest.licence = "Apache-2.0";
  manifest.imported_at = "2026-11-29T22:44:02Z";
  return manifest;
}

// The sample's text with one member replaced; a null pointer removes it.
std::string with(std::string_view pointer, const json::value* value) {
  json::value manifest = json::parse(write_manifest(sample()));
  json::object* object = &manifest.as_object();
  object->erase("identity");
  std::size_t slash = 0;
  while ((slash = pointer.find('/')) != std::string_view::npos) {
    const std::string_view step = pointer.substr(0, slash);
    pointer.remove_prefix(slash + 1);
    json::value& next = (*object)[step];
    object = next.is_array() ? &next.as_array()[0].as_object() : &next.as_object();
  }
  if (value) {
    (*object)[pointer] = *value;
  } else {
    object->erase(pointer);
  }
  return json::serialize(manifest);
}

std::string refusal(std::string_view text) {
  const auto manifest = read_manifest(text);
  if (manifest) return "accepted";
  EXPECT_EQ(manifest.error().code, ErrorCode::model_unusable);
  return manifest.error().message;
}

TEST(Manifest, IsReadBackAsItWasWritten) {
  const std::string text = write_manifest(sample());
  const auto manifest = read_manifest(text);
  ASSERT_TRUE(manifest) << manifest.error().message;
  EXPECT_EQ(write_manifest(*manifest), text);
  EXPECT_EQ(manifest->id, sample().id);
  EXPECT_EQ(manifest->aliases, sample().aliases);
  EXPECT_EQ(manifest->name, sample().name);
  EXPECT_EQ(manifest->parameters, sample().parameters);
  EXPECT_EQ(manifest->shape.kv_heads_total, 90u);
  EXPECT_TRUE(manifest->chat_template.system);
  EXPECT_TRUE(manifest->capabilities.vision);
  ASSERT_EQ(manifest->files.size(), 2u);
  EXPECT_EQ(manifest->files[1].modified_ns, -5);
  EXPECT_TRUE(manifest->files[1].linked);
  EXPECT_EQ(manifest->files[0].origin, "/from/w.gguf");
  EXPECT_EQ(manifest->files[0].modified_ns, 6);
}

TEST(Manifest, IsWrittenForPeople) {
  const std::string text = write_manifest(sample());
  EXPECT_TRUE(
      text.starts_with("{\n  \"schema\": 1,\n  \"id\": \"org/model:Q4 \xC3\xBC\",\n"
                       "  \"aliases\": [\n    \"m\",\n    \"model\"\n  ],\n"))
      << text;
  EXPECT_TRUE(text.ends_with("\n}\n"));
}

TEST(Manifest, IdentityIsWhatDecidesBehaviourAndNothingElse) {
  const std::string identity = identity_of(sample());
  EXPECT_EQ(identity.size(), 64u);
  Manifest same = sample();
  same.id = "other";
  same.aliases.clear();
  same.name = same.source = same.licence = same.imported_at = "other";
  same.files[0].path = "/elsewhere/other.gguf";
  same.files[0].linked = true;
  same.files[0].modified_ns = 9;
  same.files[0].origin = "/somewhere/w.gguf";
  same.files.push_back({FileRole::other, "files/LICENSE", 1, std::string(64, 'c'), false, 0});
  EXPECT_EQ(identity_of(same), identity);

  Manifest changed = sample();
  changed.files[0].sha256[0] = '0';
  EXPECT_NE(identity_of(changed), identity);
  changed = sample();
  changed.files.pop_back();
  EXPECT_NE(identity_of(changed), identity);
  changed = sample();
  changed.files[1].role = FileRole::weights;
  EXPECT_NE(identity_of(changed), identity);
  changed = sample();
  changed.format = "safetensors";
  EXPECT_NE(identity_of(changed), identity);
  changed = sample();
  std::swap(changed.files[0], changed.files[1]);
  EXPECT_NE(identity_of(changed), identity);
  changed = sample();
  changed.files[1] = {FileRole::config, "files/config.json", 1, std::string(64, 'c'), false, 0};
  const std::string config = identity_of(changed);
  changed.files[1].path = "files/other.json";
  EXPECT_NE(identity_of(changed), config) << "an engine finds it by its name";
}

TEST(Manifest, IgnoresMembersItDoesNotKnow) {
  const json::value anything = {{"deep", {1, 2, nullptr}}};
  EXPECT_TRUE(read_manifest(with("later", &anything)));
  EXPECT_TRUE(read_manifest(with("files/later", &anything)));
  EXPECT_TRUE(read_manifest(with("shape", nullptr)));
  EXPECT_TRUE(read_manifest(with("licence", nullptr)));
}

TEST(Manifest, NamesTheMemberAtFault) {
  const json::value number = 5;
  const json::value negative = -5;
  const json::value text = "x";
  const json::value fraction = 1.5;
  const auto expect = [](const std::string& message, std::string_view part) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  expect(refusal(with("id", nullptr)), "id is missing");
  expect(refusal(with("id", &number)), "id is not a text");
  expect(refusal(with("format", nullptr)), "format is missing");
  expect(refusal(with("parameters", &text)), "parameters is not a whole number");
  expect(refusal(with("parameters", &negative)), "parameters is not a whole number");
  expect(refusal(with("training_context_tokens", &fraction)), "training_context_tokens is not");
  expect(refusal(with("capabilities", &text)), "capabilities is not an object");
  expect(refusal(with("capabilities/chat", &number)), "capabilities.chat is neither");
  expect(refusal(with("shape/layers", &text)), "shape.layers is not a whole number");
  expect(refusal(with("aliases", &text)), "aliases is not a list");
  expect(refusal(with("files", nullptr)), "files is missing");
  expect(refusal(with("files/role", &text)), "files[0].role is not a role");
  expect(refusal(with("files/sha256", &text)), "files[0].sha256 is not 64");
  expect(refusal(with("files/size_bytes", &text)), "files[0].size_bytes is not");
  const json::value no_files = json::array();
  expect(refusal(with("files", &no_files)), "files names no weights");
  const json::value wrong_name = "a/../b";
  expect(refusal(with("id", &wrong_name)), "id is not a model name");
  const json::value controls = "a\x1B";
  expect(refusal(with("architecture", &controls)), "architecture holds a control character");
}

TEST(Manifest, NamesNoFileOutsideTheModelsFolder) {
  for (const char* path :
       {"m.gguf", "files/", "files/..", "files/../x", "/etc/passwd", "files/a/b", ""}) {
    const json::value value = path;
    EXPECT_NE(refusal(with("files/path", &value)).find("files[0].path"), std::string::npos) << path;
  }
  const json::value here = "w.gguf";
  EXPECT_NE(refusal(with("files/origin", &here)).find("is not absolute"), std::string::npos);
  const json::value linked = true;
  EXPECT_NE(refusal(with("files/linked", &linked)).find("is not absolute"), std::string::npos);
}

TEST(Manifest, OfALaterSchemaSaysSo) {
  const json::value two = 2;
  EXPECT_NE(refusal(with("schema", &two)).find("later Werk"), std::string::npos);
  const json::value zero = 0;
  EXPECT_NE(refusal(with("schema", &zero)).find("schema is 0"), std::string::npos);
}

TEST(Manifest, WhoseFilesWereEditedIsRefused) {
  std::string text = write_manifest(sample());
  text[text.find(std::string(64, 'a'))] = 'f';
  EXPECT_NE(refusal(text).find("identity does not belong"), std::string::npos);
}

TEST(Manifest, ThatIsNoJsonObjectIsRefused) {
  EXPECT_NE(refusal("").find("not JSON"), std::string::npos);
  EXPECT_NE(refusal("[]").find("not a JSON object"), std::string::npos);
  EXPECT_NE(refusal("{\"id\":\"\xFF\"}").find("UTF-8"), std::string::npos);
  EXPECT_NE(refusal(std::string(100'000, '[')).find("not JSON"), std::string::npos);
  EXPECT_NE(refusal(std::string(kManifestBytesMax + 1, ' ')).find("1 MiB"), std::string::npos);
  const std::string text = write_manifest(sample());
  for (std::size_t length = 0; length + 2 < text.size(); ++length) {
    ASSERT_FALSE(read_manifest(std::string_view(text).substr(0, length))) << length;
  }
}

TEST(KvBytesPerToken, FollowTheShape) {
  EXPECT_EQ(kv_bytes_per_token({30, 576, 9, 90, 64, 64}), 90u * 128 * 2);
  EXPECT_EQ(kv_bytes_per_token({}), 0u);
  EXPECT_EQ(kv_bytes_per_token({1, 1, 1, ~std::uint64_t{0}, 64, 64}), 0u);
}

}  // namespace
}  // namespace werk::model
