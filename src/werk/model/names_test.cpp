#include <gtest/gtest.h>

#include <map>

#include "werk/model/chat_template.hpp"
#include "werk/model/default_model.hpp"
#include "werk/model/home.hpp"
#include "werk/model/model_id.hpp"
#include "werk/model/model_name.hpp"
#include "werk/model/split_name.hpp"

namespace werk::model {
namespace {

using namespace std::string_literals;

TEST(ModelId, AllowsWhatPeopleCallModels) {
  for (const char* id : {"a", "smollm2", "org/model:Q4_K_M", "a+b.c_d-e", "my model",
                         "\xC3\xBC\x62ung/\xE6\xA8\xA1\xE5\x9E\x8B", "..a", ".hidden", "%41"}) {
    EXPECT_TRUE(check_model_id(id)) << id;
  }
  EXPECT_TRUE(check_model_id(std::string(255, 'x')));
}

TEST(ModelId, RefusesWhatCouldMeanAPathOrNothing) {
  for (const std::string& id : {""s, "."s, ".."s, "a/../b"s, "/a"s, "a/"s, "a//b"s, "a\nb"s,
                                "a\0b"s, "\x7F"s, "\xFF"s, " a"s, "a "s, std::string(256, 'x')}) {
    const Status right = check_model_id(id);
    ASSERT_FALSE(right) << id;
    EXPECT_EQ(right.error().code, ErrorCode::invalid_request);
  }
}

TEST(FolderName, IsAsciiAndGivesTheIdBack) {
  for (const std::string id : {"smollm2", "org/model:Q4_K_M", ".hidden", "my model", "%41", "a%b",
                               "\xE6\xA8\xA1\xE5\x9E\x8B", "UPPER.gguf"}) {
    const std::string name = folder_name(id);
    EXPECT_EQ(name.find('/'), std::string::npos);
    EXPECT_NE(name.front(), '.');
    for (const char c : name) EXPECT_TRUE(c > 0x20 && c < 0x7F) << name;
    EXPECT_EQ(folder_id(name), id);
  }
  EXPECT_EQ(folder_name("org/model:Q4"), "org%2Fmodel%3AQ4");
}

TEST(FolderName, OfALongIdIsShortAndItsOwn) {
  const std::string a(255, ':');
  const std::string b = std::string(254, ':') + ";";
  EXPECT_LE(folder_name(a).size(), 200u);
  EXPECT_NE(folder_name(a), folder_name(b));
  EXPECT_FALSE(folder_id(folder_name(a)));
}

TEST(FolderName, ThatNoIdHasGivesNone) {
  for (const char* name : {"", ".lock", "a%2", "a%zz", "a%2f", "a b", "%41", "%2E%2E"}) {
    EXPECT_FALSE(folder_id(name)) << name;
  }
}

TEST(NameParts, EndAtTheQuantization) {
  const auto parted = [](std::string_view stem) {
    const NameParts parts = part_name(stem);
    return parts.base + "|" + parts.quantization;
  };
  EXPECT_EQ(parted("Qwen3-8B-Q4_K_M"), "Qwen3-8B|Q4_K_M");
  EXPECT_EQ(parted("qwen2.5-7b-instruct-q4_k_m"), "qwen2.5-7b-instruct|Q4_K_M");
  EXPECT_EQ(parted("SmolLM2-135M-Instruct.Q4_1"), "SmolLM2-135M-Instruct|Q4_1");
  EXPECT_EQ(parted("Qwen3-8B-UD-IQ2_XXS"), "Qwen3-8B|UD-IQ2_XXS");
  EXPECT_EQ(parted("gpt-oss-20b-mxfp4"), "gpt-oss-20b|MXFP4");
  EXPECT_EQ(parted("a_b_Q8_0"), "a_b|Q8_0");
  EXPECT_EQ(parted("a_bf16"), "a|BF16");
  EXPECT_EQ(parted("UD-Q4_K_XL"), "|UD-Q4_K_XL");
  for (const char* none :
       {"Qwen3-8B", "Q4", "a-Q", "a-Qx_K", "", "-", "a-IQ_1", "llama-2-13b-chat"}) {
    EXPECT_EQ(parted(none), std::string(none) + "|");
  }
}

GgufInfo header(std::string quantization) {
  GgufInfo info;
  info.quantization = std::move(quantization);
  return info;
}

TEST(DefaultModelId, IsTheFilesNameAndTheQuantization) {
  const auto id = [](const char* path) { return default_model_id(path, header("Q4_0")); };
  EXPECT_EQ(id("/m/SmolLM2-135M.q4_1.gguf"), "SmolLM2-135M:Q4_1");
  EXPECT_EQ(id("/m/big-00002-of-00003.GGUF"), "big-00002-of-00003:Q4_0");
  EXPECT_EQ(id("/m/big-IQ4_NL-00002-of-00003.gguf"), "big:IQ4_NL");
  EXPECT_EQ(id("/m/plain.gguf"), "plain:Q4_0");
  EXPECT_EQ(default_model_id("/m/plain.gguf", header("unknown (77)")), "plain");
  EXPECT_EQ(default_model_id("/m/plain.gguf", header("")), "plain");
}

TEST(DefaultModelId, OfAFileThatSaysNothingIsTheHeadersElseTheFolders) {
  GgufInfo info = header("Q8_0");
  const std::string blob = "/o/blobs/sha256-" + std::string(64, 'a');
  EXPECT_EQ(default_model_id("/hub/Qwen3-8B/model.gguf", info), "Qwen3-8B:Q8_0");
  EXPECT_EQ(default_model_id("/hub/Qwen3-8B/Q8_0/Q8_0-00001-of-00002.gguf", info), "Qwen3-8B:Q8_0");
  EXPECT_EQ(default_model_id("/.gguf", info), "model:Q8_0");
  info.repository_url = "https://example.org/org/repo/";
  EXPECT_EQ(default_model_id("/hub/x/model.gguf", info), "org/repo:Q8_0");
  info.repository_url = "https://example.org/org";
  EXPECT_EQ(default_model_id("/hub/x/model.gguf", info), "x:Q8_0");
  info.name = "Qwen 3 8B Q8_0";
  EXPECT_EQ(default_model_id(blob, info), "Qwen-3-8B:Q8_0");
  info.basename = "Qwen3";
  info.size_label = "8B";
  info.finetune = "Instruct";
  EXPECT_EQ(default_model_id(blob, info), "Qwen3-8B-Instruct:Q8_0");
  info.basename = "Qwen3-8b";
  EXPECT_EQ(default_model_id(blob, info), "Qwen3-8b-Instruct:Q8_0");
}

TEST(DefaultModelId, OfTheHubsCacheIsTheRepository) {
  const std::string hub = "/c/hub/models--org--repo-GGUF/snapshots/abc/";
  EXPECT_EQ(default_model_id(hub + "x-Q4_K_M.gguf", header("")), "org/repo-GGUF:Q4_K_M");
  EXPECT_EQ(hub_repository(hub + "sub/x.gguf"), "org/repo-GGUF");
  EXPECT_EQ(hub_repository("/c/hub/models--repo/snapshots/abc/x.gguf"), "repo");
  EXPECT_EQ(hub_repository("/c/hub/models--org--repo/blobs/x"), "");
}

TEST(DefaultModelId, IsAnIdWhateverTheTextsAre) {
  for (const std::string text :
       {"", " ", "/", "../..", "a//b/", "\x01\n", "\xFF\xFE", ". ", "a/ ../b"}) {
    EXPECT_TRUE(check_model_id(tidied_model_id(text))) << text;
    GgufInfo info = header(text);
    info.name = text;
    EXPECT_TRUE(check_model_id(default_model_id("/" + text + "/model.gguf", info))) << text;
  }
  EXPECT_EQ(tidied_model_id("a//./b/"), "a/b");
  std::string many;
  for (int i = 0; i < 200; ++i) many += "\xE6\xA8\xA1";
  EXPECT_TRUE(check_model_id(tidied_model_id(many)));
  EXPECT_GT(tidied_model_id(many).size(), 240u);
}

TEST(SplitName, IsReadAndWritten) {
  const auto name = parse_split_name("m-x-00002-of-00013.gguf");
  ASSERT_TRUE(name);
  EXPECT_EQ(name->prefix, "m-x");
  EXPECT_EQ(name->number, 2u);
  EXPECT_EQ(name->count, 13u);
  EXPECT_EQ(split_file_name("m-x", 2, 13), "m-x-00002-of-00013.gguf");
  for (const char* wrong : {"m.gguf", "-00001-of-00002.gguf", "m-00000-of-00002.gguf",
                            "m-00003-of-00002.gguf", "m-0000a-of-00002.gguf", "m-1-of-2.gguf"}) {
    EXPECT_FALSE(parse_split_name(wrong)) << wrong;
  }
}

Result<std::filesystem::path> home_with(std::map<std::string, std::string> variables) {
  const Environment environment = [&](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
  return home_folder(environment, "/work");
}

TEST(HomeFolder, IsTheFirstThatTheEnvironmentNames) {
  EXPECT_EQ(*home_with({{"WERK_HOME", "/w"}, {"XDG_DATA_HOME", "/x"}, {"HOME", "/h"}}), "/w");
  EXPECT_EQ(*home_with({{"WERK_HOME", "rel/../w"}, {"HOME", "/h"}}), "/work/w");
  EXPECT_EQ(*home_with({{"WERK_HOME", ""}, {"XDG_DATA_HOME", "/x"}, {"HOME", "/h"}}), "/x/werk");
  EXPECT_EQ(*home_with({{"XDG_DATA_HOME", "x"}, {"HOME", "/h"}}), "/h/.local/share/werk");
  EXPECT_EQ(*home_with({{"HOME", "/h"}}), "/h/.local/share/werk");
  EXPECT_FALSE(home_with({}));
  EXPECT_FALSE(home_with({{"HOME", ""}}));
}

TEST(ChatTemplate, SupportsToolsWhenABlockNamesThem) {
  EXPECT_TRUE(look_at_chat_template("{%- if tools %}x{% endif %}").tools);
  EXPECT_TRUE(look_at_chat_template("{{ tools | tojson }}").tools);
  EXPECT_TRUE(look_at_chat_template("{{ x }}", "{{ y }}").tools) << "a template of its own";
  for (const char* text : {"tools {{ 'tools' }} {# tools #} {{ \"a \\\" tools\" }}",
                           "{{ message.tools }}{{ builtin_tools }}{{ tools2 }}", ""}) {
    EXPECT_FALSE(look_at_chat_template(text).tools) << text;
  }
}

TEST(ChatTemplate, SupportsSystemMessagesUnlessItRaises) {
  for (const char* text : {"{% if messages[0]['role'] == 'system' %}s{% endif %}",
                           "{{ '<|' + message.role + '|>' }}", "{{ message['role'] }}",
                           "{{ raise_exception('Only user and system roles') }}{{ m.role }}"}) {
    EXPECT_TRUE(look_at_chat_template(text).system) << text;
  }
  for (const char* text : {"{% if message.role == 'user' %}{{ m.content }}{% endif %}",
                           "{% if messages[0]['role'] == 'system' %}"
                           "{{ raise_exception('System role not supported') }}{% endif %}"}) {
    EXPECT_FALSE(look_at_chat_template(text).system) << text;
  }
}

TEST(ChatTemplate, IsPresentOrNot) {
  EXPECT_FALSE(look_at_chat_template("").present);
  EXPECT_TRUE(look_at_chat_template("x").present);
  EXPECT_TRUE(look_at_chat_template("{{").present);
  EXPECT_TRUE(look_at_chat_template("{% '").present);
  EXPECT_TRUE(look_at_chat_template("{# unclosed").present);
}

TEST(PullableModels, HoldTheDefaultModelWithItsDigest) {
  const auto model = find_pullable_model(kDefaultModelName);
  ASSERT_TRUE(model);
  EXPECT_EQ(model->sha256.size(), 64u);
  EXPECT_TRUE(check_model_id(model->name));
  EXPECT_FALSE(find_pullable_model("nothing"));
}

}  // namespace
}  // namespace werk::model
