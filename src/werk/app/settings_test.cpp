#include "werk/app/settings.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <map>

namespace werk::app {
namespace {

Environment environment(std::map<std::string, std::string> values) {
  return [values = std::move(values)](std::string_view name) -> std::optional<std::string> {
    const auto found = values.find(std::string(name));
    if (found == values.end()) return std::nullopt;
    return found->second;
  };
}

Result<Settings> read(std::vector<GivenFlag> flags,
                      std::map<std::string, std::string> variables = {}) {
  return read_settings(flags, environment(std::move(variables)));
}

TEST(Settings, AFlagWinsOverItsVariableAndAVariableOverTheDefault) {
  EXPECT_EQ(read({})->llama.parallel, 1u);
  EXPECT_EQ(read({}, {{"WERK_LLAMA_PARALLEL", "3"}})->llama.parallel, 3u);
  EXPECT_EQ(read({{"--parallel", "4"}}, {{"WERK_LLAMA_PARALLEL", "3"}})->llama.parallel, 4u);
  EXPECT_EQ(read({{"--parallel", "4"}}, {{"WERK_LLAMA_PARALLEL", "no number"}})->llama.parallel,
            4u);
}

TEST(Settings, ABadValueNamesWhatHeldItAndWhatItTakes) {
  const auto by_flag = read({{"--port", "70000"}});
  ASSERT_FALSE(by_flag);
  EXPECT_EQ(by_flag.error().message, "--port takes a whole number from 0 to 65535, not \"70000\"");
  const auto by_variable = read({}, {{"WERK_LLAMA_CTX", "-5"}});
  ASSERT_FALSE(by_variable);
  EXPECT_TRUE(by_variable.error().message.starts_with("WERK_LLAMA_CTX takes a whole number"));
  const auto backend = read({{"--backend", "llama-cdua"}});
  ASSERT_FALSE(backend);
  EXPECT_NE(backend.error().message.find("did you mean llama-cuda?"), std::string::npos);
}

TEST(Settings, EveryOptionWithAVariableIsReadFromIt) {
  const std::map<std::string, std::string> some = {{"WERK_HOME", "/x"},
                                                   {"WERK_LLAMA_PARALLEL", "2"},
                                                   {"WERK_LLAMA_CTX", "0"},
                                                   {"WERK_LLAMA_BATCH_SIZE", "9"},
                                                   {"WERK_LLAMA_UBATCH_SIZE", "8"},
                                                   {"WERK_LLAMA_THREADS", "7"},
                                                   {"WERK_LLAMA_THREADS_BATCH", "6"},
                                                   {"WERK_LLAMA_GPU_LAYERS", "5"},
                                                   {"WERK_LLAMA_MAIN_GPU", "0"},
                                                   {"WERK_LLAMA_KV_CACHE_TYPE", "q8_0"},
                                                   {"WERK_LLAMA_FLASH_ATTN", "on"},
                                                   {"WERK_LLAMA_KV_OFFLOAD", "off"},
                                                   {"WERK_LLAMA_ARGS", "--foo 'a b'"},
                                                   {"WERK_LLAMA_SERVER", "/s"},
                                                   {"WERK_LLAMA_SERVER_CPU", "/c"},
                                                   {"WERK_API_KEY", "k"},
                                                   {"WERK_API_BODY_LIMIT_BYTES", "2048"},
                                                   {"WERK_EARLY_HEADERS", "20s"}};
  const auto settings = read({}, some);
  ASSERT_TRUE(settings) << settings.error().message;
  EXPECT_EQ(settings->home, "/x");
  EXPECT_EQ(settings->llama.ctx_size, 0u);
  EXPECT_EQ(settings->llama.batch_size, 9u);
  EXPECT_EQ(settings->llama.ubatch_size, 8u);
  EXPECT_EQ(settings->llama.threads, 7u);
  EXPECT_EQ(settings->llama.threads_batch, 6u);
  EXPECT_EQ(settings->llama.gpu_layers, "5");
  EXPECT_EQ(settings->llama.main_gpu, 0u);
  EXPECT_EQ(settings->llama.kv_cache_type, "q8_0");
  EXPECT_EQ(settings->llama.flash_attn, "on");
  EXPECT_EQ(settings->llama.kv_offload, engine::llama_server::Switch::off);
  EXPECT_EQ(settings->llama.extra_arguments, (std::vector<std::string>{"--foo", "a b"}));
  EXPECT_EQ(settings->executables.any_mode, "/s");
  EXPECT_EQ(settings->executables.by_mode[0], "/c");
  EXPECT_EQ(settings->keys, std::vector<std::string>{"k"});
  EXPECT_EQ(settings->body_bytes_max, 2048u);
  EXPECT_EQ(settings->early_headers, std::chrono::seconds(20));
  EXPECT_EQ(read({})->early_headers, std::chrono::seconds(0));
}

TEST(Settings, AnAliasIsANameAndAModel) {
  const auto settings = read({{"--alias", "claude-*=a/b"}, {"--alias", "gpt-4=c"}});
  ASSERT_TRUE(settings);
  EXPECT_EQ(settings->aliases.at(0).pattern, "claude-*");
  EXPECT_EQ(settings->aliases.at(0).model, "a/b");
  for (const char* bad : {"claude", "=x", "x=", "a*b*=c"})
    EXPECT_FALSE(read({{"--alias", bad}})) << bad;
}

TEST(Settings, AnEmptyKeyIsAnErrorAndNotAnOpenNode) {
  EXPECT_FALSE(read({}, {{"WERK_API_KEY", ""}}));
}

TEST(Settings, AKeyFileIsReadLineByLineAndMustBePrivate) {
  const std::string path = ::testing::TempDir() + "werk_keys_test";
  std::ofstream(path) << "# ours\nfirst\n\n  second  \n";
  ::chmod(path.c_str(), 0644);
  const auto open = read({}, {{"WERK_API_KEYS", path}});
  ASSERT_FALSE(open);
  EXPECT_NE(open.error().message.find("chmod 600"), std::string::npos);
  ::chmod(path.c_str(), 0600);
  EXPECT_EQ(read({}, {{"WERK_API_KEYS", path}})->keys,
            (std::vector<std::string>{"first", "second"}));
}

TEST(Duration, ReadsUnitsAndRefusesTheRest) {
  EXPECT_EQ(*parse_duration("500ms"), std::chrono::milliseconds(500));
  EXPECT_EQ(*parse_duration("2m"), std::chrono::minutes(2));
  EXPECT_EQ(*parse_duration("1.5"), std::chrono::milliseconds(1500));
  EXPECT_EQ(*parse_duration("0"), std::chrono::milliseconds(0));
  for (const char* bad : {"", "x", "5 s", "-1s", "3days", "nan", "inf"})
    EXPECT_FALSE(parse_duration(bad)) << bad;
}

}  // namespace
}  // namespace werk::app
