#include "werk/app/settings_file.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/temporary_folder.hpp"

namespace werk::app {
namespace {

Environment nothing() {
  return [](std::string_view) { return std::nullopt; };
}

Settings read(std::string text, ConfigFile::Place place = ConfigFile::Place::named) {
  ConfigFile file = parse_config(std::move(text), "/etc/w/werk.toml");
  file.place = place;
  Result<Settings> settings = read_settings({}, nothing(), std::move(file));
  EXPECT_TRUE(settings) << settings.error().message;
  return std::move(*settings);
}

// "LINE: MESSAGE" each.
std::vector<std::string> faults_in(std::string text,
                                   ConfigFile::Place place = ConfigFile::Place::named) {
  std::vector<std::string> all;
  for (const Fault& fault : read(std::move(text), place).file.faults)
    all.push_back(std::to_string(fault.line) + ": " + fault.message);
  return all;
}

using Faults = std::vector<std::string>;

TEST(SettingsFile, AllFaultsAreToldAtOnceInTheFilesOrder) {
  EXPECT_EQ(faults_in("prot = 1\nparallel = \"x\"\nthreads = 0\nport = 1\nport = 2\n"
                      "[models.a]\nparalel = 2\n"),
            (Faults{"1: prot is no setting; did you mean port?",
                    "2: parallel takes a whole number, not a string",
                    "3: threads takes a whole number from 1 to 1048576, not \"0\"",
                    "5: port is given twice; one of the two must go",
                    "7: models.\"a\".paralel is no setting; did you mean parallel?"}));
}

TEST(SettingsFile, WhatIsSoundOfAFaultyFileCounts) {
  const Settings settings = read("prot = 1\nport = 5\nthreads = 0\n");
  EXPECT_EQ(settings.port, 5);
  EXPECT_EQ(settings.llama.threads, std::nullopt);
}

TEST(SettingsFile, EachSettingHasItsOwnTypeAndNoOther) {
  for (const char* wrong : {"port = \"1\"",
                            "port = 1.5",
                            "port = true",
                            "port = [1]",
                            "host = 1",
                            "host = 1979-05-27",
                            "allow_unauthenticated = \"true\"",
                            "allow_host = \"a\"",
                            "allow_host = [1]",
                            "prompt_edits = 1",
                            "start_timeout = true",
                            "start_timeout = \"soon\"",
                            "llama_args = 3",
                            "llama_args = [3]",
                            "aliases = \"a=b\"",
                            "aliases = { a = 1 }",
                            "aliases = { \"*a*\" = \"b\" }",
                            "models = 3",
                            "models = { a = 3 }",
                            "gpu_layers = 1.5",
                            "gpu_layers = \"most\"",
                            "kv_cache_type = \"q9\"",
                            "llama_args = \"'open\"",
                            "llama_args = \"--port 3\"",
                            "api_keys_file = \"/no/such\"",
                            "llama_server = \"\""}) {
    EXPECT_EQ(faults_in(wrong).size(), 1u) << wrong;
  }
  for (const char* right :
       {"allow_unauthenticated = false", "allow_host = []", "prompt_edits = false",
        "flash_attn = true", "start_timeout = 1.5", "start_timeout = 10", "gpu_layers = 3",
        "gpu_layers = \"all\"", "llama_args = [\"--x\", \"a b\"]", "aliases = {}", "models = {}"}) {
    EXPECT_EQ(faults_in(right), Faults{}) << right;
  }
}

TEST(SettingsFile, AFlagThatIsFalseIsNotSet) {
  EXPECT_EQ(read("allow_unauthenticated = false").unauthenticated, Permission::no);
  EXPECT_EQ(read("allow_unauthenticated = true").unauthenticated, Permission::yes);
}

TEST(SettingsFile, AKeyIsRefusedWithTheWayToGiveIt) {
  const Faults faults = faults_in("api_key = \"secret-thing\"");
  ASSERT_EQ(faults.size(), 1u);
  EXPECT_NE(faults[0].find("WERK_API_KEY"), std::string::npos);
  EXPECT_NE(faults[0].find("api_keys_file"), std::string::npos);
  EXPECT_EQ(faults[0].find("secret-thing"), std::string::npos);
}

TEST(SettingsFile, WhatStandsInTheWrongPlaceIsToldItsRightOne) {
  EXPECT_EQ(faults_in("args = \"x\""),
            Faults{"1: args is a setting of one model; it stands in [models.\"ID\"]"});
  EXPECT_EQ(faults_in("[models.m]\nport = 1"),
            Faults{"2: models.\"m\".port: port is a setting of the node; it stands above the first "
                   "[table]"});
  EXPECT_EQ(faults_in("[models.m]\nllama_args = \"x\""),
            Faults{"2: models.\"m\".llama_args is called args here"});
  EXPECT_EQ(faults_in("[models.a.b]\nparallel = 1"),
            Faults{"1: models.\"a\".b is no setting; an id with a dot or a slash stands in quotes, "
                   "as [models.\"a.b\"]"});
  EXPECT_EQ(faults_in("model_home = \"/x\"", ConfigFile::Place::home).size(), 1u);
  EXPECT_EQ(faults_in("model_home = \"/x\"").size(), 0u);
}

TEST(SettingsFile, TextThatIsNoTomlIsNamedByItsLine) {
  const Faults faults = faults_in("port = 1\nhost = = 2\n");
  ASSERT_EQ(faults.size(), 1u);
  EXPECT_TRUE(faults[0].starts_with("2: this is no TOML: ")) << faults[0];
  EXPECT_EQ(faults_in("[models.a]\nparallel=1\n[models.a]\nparallel=2\n").size(), 1u);
  EXPECT_EQ(faults_in(std::string("port = 1\n\0\xff\n", 12)).size(), 1u);
}

TEST(SettingsFile, TablesThatNestWithoutEndAreRefused) {
  std::string deep = "a";
  for (int i = 0; i < 100'000; ++i) deep += ".a";
  EXPECT_EQ(faults_in("\n" + deep + " = 1\n"), Faults{"2: this line has more than 1000 dots"});
  EXPECT_EQ(faults_in("[" + deep + "]\n").size(), 1u);
  EXPECT_EQ(faults_in("a = " + std::string(100'000, '[') + "\n").size(), 1u);
  EXPECT_EQ(faults_in("a = { b = " + std::string(100'000, '{') + "\n").size(), 1u);
  // Lists that toml++ still reads are walked without harm.
  EXPECT_EQ(faults_in("port = " + std::string(200, '[') + std::string(200, ']')).size(), 1u);
}

TEST(SettingsFile, RelativePathsStartAtTheFile) {
  EXPECT_EQ(read("llama_server = \"bin/llama-server\"").executables.any_mode,
            "/etc/w/bin/llama-server");
  EXPECT_EQ(read("llama_server = \"llama-server\"").executables.any_mode, "llama-server")
      << "a bare name is looked up in PATH";
  EXPECT_EQ(read("model_home = \"home\"").home, "/etc/w/home");
  EXPECT_EQ(placed_path("~/x", "/f", "/users/me", BareName::is_path), "/users/me/x");
}

TEST(SettingsFile, ANamedOneMustBeThereAndTheHomesNeedNot) {
  const test::TemporaryFolder folder;
  const std::string home = folder.path().string();
  const std::vector<GivenFlag> at_home = {{"--model-home", home}};
  EXPECT_TRUE(load_settings(at_home, nothing()));
  const std::string named = (folder / "other.toml").string();
  const std::vector<GivenFlag> both = {{"--model-home", home}, {"--config", named}};
  const auto missing = load_settings(both, nothing());
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().message.find(named), std::string::npos);
  std::ofstream(folder / "werk.toml") << "port = 1\n";
  std::ofstream(named) << "port = 2\n";
  EXPECT_EQ(load_settings(at_home, nothing())->port, 1);
  EXPECT_EQ(load_settings(both, nothing())->port, 2);
  const Environment variable = [&](std::string_view name) {
    return name == "WERK_CONFIG" ? std::optional(named) : std::nullopt;
  };
  EXPECT_EQ(load_settings(at_home, variable)->port, 2);
}

std::string model(const std::string& entries) { return "[models.m]\n" + entries + "\n"; }

TEST(ModelSettings, WhatOnlyAModelHasIsRead) {
  const test::TemporaryFolder folder;
  const std::string jinja = (folder / "chat.jinja").string();
  const std::string projector = (folder / "mm.gguf").string();
  std::ofstream(jinja) << "{{ x }}";
  std::ofstream(projector) << "four";
  const Settings settings =
      read(model("engine = \"bin/llama-server\"\naliases = [\"a\", \"b-*\"]\npin = true\n"
                 "idle_timeout = \"2h\"\nchat_template_file = \"" +
                 jinja + "\"\nmmproj = \"" + projector + "\""));
  EXPECT_EQ(settings.file.faults.size(), 0u);
  const ModelSettings own = settings_of_model(settings, "m");
  EXPECT_EQ(own.llama.executable, "/etc/w/bin/llama-server");
  EXPECT_EQ(own.pinned, Permission::yes);
  EXPECT_EQ(own.idle_timeout, std::chrono::hours(2));
  ASSERT_TRUE(own.llama.chat_template);
  EXPECT_EQ(own.llama.chat_template->path, jinja);
  EXPECT_EQ(own.llama.projector->size_bytes, 4u);
  ASSERT_EQ(settings.aliases.size(), 2u);
  EXPECT_EQ(settings.aliases[1].pattern, "b-*");
  EXPECT_EQ(settings.aliases[1].model, "m");
}

TEST(ModelSettings, ATemplatesIdentityIsItsContent) {
  const test::TemporaryFolder folder;
  const auto identity = [&](const std::string& name, const std::string& text) {
    const std::string path = (folder / name).string();
    std::ofstream(path) << text;
    return read(model("chat_template_file = \"" + path + "\""))
        .models.at(0)
        .llama.chat_template->identity;
  };
  EXPECT_EQ(identity("a", "one"), identity("b", "one"));
  EXPECT_NE(identity("a", "one"), identity("a", "two"));
}

TEST(ModelSettings, AFileThatCantBeReadIsNamedWithItsLine) {
  for (const char* key : {"chat_template_file", "mmproj"}) {
    const Faults faults = faults_in(model(std::string(key) + " = \"/no/such.file\""));
    ASSERT_EQ(faults.size(), 1u) << key;
    EXPECT_EQ(faults[0], "2: models.\"m\"." + std::string(key) +
                             " names /no/such.file, which can't be read: No such file or "
                             "directory");
    EXPECT_EQ(faults_in(model(std::string(key) + " = \"/\"")).size(), 1u) << "a folder is no file";
  }
}

TEST(ModelSettings, OneNameLeadsToOneModel) {
  EXPECT_EQ(faults_in("[aliases]\na = \"x\"\n[models.y]\naliases = [\"a\"]\n"),
            Faults{"4: \"a\" is an alias of x and of y; it can lead to one of them"});
  EXPECT_EQ(faults_in("[aliases]\na = \"x\"\n[models.x]\naliases = [\"a\"]\n"), Faults{});
  EXPECT_EQ(faults_in(model("aliases = [\"*a*\"]")).size(), 1u);
  EXPECT_EQ(faults_in(model("aliases = [\"\"]")).size(), 1u);
}

TEST(ModelSettings, DefaultsAreKnownNamesWithTypeAndRange) {
  const auto defaults = [](const std::string& entries) {
    return "[models.m.defaults]\n" + entries + "\n";
  };
  const Settings settings = read(defaults(
      "temperature = 0.5\ntop_k = 3\nstop = [\"a\", \"b\"]\nseed = -1\nreasoning_effort = \"low\"\n"
      "parallel_tool_calls = false\nchat_template_kwargs = { enable_thinking = false, n = 1.5 }"));
  EXPECT_EQ(settings.file.faults.size(), 0u);
  std::vector<std::string> json;
  for (const RequestDefault& one : settings.models.at(0).defaults)
    json.push_back(one.name + " " + one.json + " " + one.source.text);
  EXPECT_EQ(json, (std::vector<std::string>{
                      "temperature 0.5 /etc/w/werk.toml:2", "top_k 3 /etc/w/werk.toml:3",
                      "stop [\"a\",\"b\"] /etc/w/werk.toml:4", "seed -1 /etc/w/werk.toml:5",
                      "reasoning_effort \"low\" /etc/w/werk.toml:6",
                      "parallel_tool_calls false /etc/w/werk.toml:7",
                      "chat_template_kwargs {\"enable_thinking\":false,\"n\":1.5} "
                      "/etc/w/werk.toml:8"}));
  EXPECT_EQ(faults_in(defaults("temprature = 1")),
            Faults{"2: models.\"m\".defaults.temprature is no setting; did you mean temperature?"});
  EXPECT_EQ(faults_in(defaults("temperature = 11")),
            Faults{"2: models.\"m\".defaults.temperature takes a number from 0 to 10, not 11"});
  for (const char* wrong : {"temperature = \"1\"",
                            "temperature = nan",
                            "temperature = inf",
                            "top_p = 1.1",
                            "top_p = -0.1",
                            "top_k = 1.5",
                            "max_tokens = 0",
                            "seed = 4294967296",
                            "stop = \"\"",
                            "stop = [1]",
                            "stop = 1",
                            "stop = [\"\"]",
                            "reasoning_effort = \"most\"",
                            "reasoning_effort = 1",
                            "parallel_tool_calls = 1",
                            "chat_template_kwargs = \"x\"",
                            "model = \"x\"",
                            "stream = true",
                            "messages = []",
                            "n = 2"}) {
    EXPECT_EQ(faults_in(defaults(wrong)).size(), 1u) << wrong;
  }
  EXPECT_EQ(faults_in(model("defaults = 3")).size(), 1u);
}

TEST(CacheSizes, AreTakenToTheNearestThatIsAllowedWithOneWarningEach) {
  const auto sized = [](std::string_view variable, std::string_view value) {
    const Environment environment = [&](std::string_view name) {
      return name == variable ? std::optional<std::string>(value) : std::nullopt;
    };
    return read_settings({}, environment);
  };
  const auto many = sized("WERK_ONNX_GENAI_MODEL_CACHE_SIZE", "99");
  EXPECT_EQ(many->onnx_genai_models, 8u);
  EXPECT_EQ(many->warnings, (std::vector<std::string>{"WERK_ONNX_GENAI_MODEL_CACHE_SIZE takes 0 to "
                                                      "8; 99 counts as 8"}));
  EXPECT_EQ(sized("WERK_TRANSFORMERS_MODEL_CACHE_SIZE", "-1")->transformers_models, 0u);
  EXPECT_EQ(sized("WERK_BURN_MODEL_CACHE_SIZE", "0")->burn_models, 1u);
  EXPECT_EQ(sized("WERK_BURN_MODEL_CACHE_SIZE", "0")->warnings.size(), 1u);
  const auto huge = sized("WERK_BURN_MODEL_CACHE_SIZE", "99999999999999999999");
  EXPECT_EQ(huge->burn_models, 8u);
  EXPECT_EQ(huge->warnings.size(), 1u);
  EXPECT_EQ(sized("WERK_BURN_MODEL_CACHE_SIZE", "8")->warnings.size(), 0u);
  EXPECT_FALSE(sized("WERK_BURN_MODEL_CACHE_SIZE", "many"));
  EXPECT_FALSE(sized("WERK_BURN_MODEL_CACHE_SIZE", "2x"));
  const Settings by_file = read("burn_model_cache_size = 9");
  EXPECT_EQ(by_file.burn_models, 8u);
  EXPECT_EQ(by_file.warnings.size(), 1u);
}

}  // namespace
}  // namespace werk::app
