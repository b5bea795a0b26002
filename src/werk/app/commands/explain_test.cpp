#include "werk/app/commands/explain.hpp"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <sstream>

#include "werk/app/commands/config.hpp"
#include "werk/app/commands/rows.hpp"

namespace werk::app {
namespace {

using Words = std::vector<std::string>;

Settings settings_of(const std::string& file, std::vector<GivenFlag> flags = {}) {
  const Environment none = [](std::string_view) { return std::nullopt; };
  auto settings = read_settings(flags, none, parse_config(file, "/home/of/werk.toml"));
  EXPECT_TRUE(settings);
  EXPECT_EQ(settings->file.faults.size(), 0u);
  return *settings;
}

std::string source_in(const std::vector<LaunchPart>& parts, const std::string& word) {
  for (const LaunchPart& part : parts) {
    if (part.words.front() == word) return part.source;
  }
  return "(absent)";
}

TEST(LaunchParts, EachNamesWhatDecidedIt) {
  const Settings settings = settings_of(
      "threads = 3\nllama_args = \"--node\"\n[models.m]\nparallel = 2\nargs = \"--x 1 --y\"\n",
      {{"--batch-size", "64"}});
  const auto parts = launch_parts(
      {"-m", "/f", "-np", "2", "-no-kvu", "-c", "64", "-b", "64", "-t", "3", "--x", "1", "--y"},
      settings, settings_of_model(settings, "m"));
  EXPECT_EQ(source_in(parts, "-m"), "the model");
  EXPECT_EQ(source_in(parts, "-np"), "parallel (werk.toml:4)");
  EXPECT_EQ(source_in(parts, "-no-kvu"), "Werk");
  EXPECT_EQ(source_in(parts, "-c"), "as trained, at most 32768, each slot");
  EXPECT_EQ(source_in(parts, "-b"), "batch_size (--batch-size)");
  EXPECT_EQ(source_in(parts, "-t"), "threads (werk.toml:1)");
  EXPECT_EQ(parts.back().words, (Words{"--x", "1", "--y"}));
  EXPECT_EQ(parts.back().source, "args (werk.toml:5)");
  const auto others =
      launch_parts({"-np", "1", "--node"}, settings, settings_of_model(settings, "o"));
  EXPECT_EQ(others.back().source, "llama_args (werk.toml:2)");
  EXPECT_EQ(source_in(others, "-np"), "parallel (default)");
}

TEST(LaunchParts, SecretsOfTheUsersOwnWordsAreMasked) {
  const Settings settings = settings_of("llama_args = \"--hf-token abc --some-key=def --x -1\"");
  const auto parts = launch_parts({"--hf-token", "abc", "--some-key=def", "--x", "-1"}, settings,
                                  settings_of_model(settings, "m"));
  EXPECT_EQ(parts.back().words, (Words{"--hf-token", "***", "--some-key=***", "--x", "-1"}));
  EXPECT_EQ(config_json(settings).find("abc"), std::string::npos);
  EXPECT_EQ(config_table(settings).find("=def"), std::string::npos);
}

Explanation sample() {
  Explanation it;
  it.asked = "claude-x";
  it.id = "smollm2";
  it.found_by = "by the alias claude-*";
  it.engine = "llama-cpu";
  it.version = "b1";
  it.rejected = {{"llama-cuda", std::string(30, 'w') + " " + std::string(50, 'v')}};
  it.key = "llama-cpu/0123/4567";
  it.slots = 4;
  it.context_tokens_per_slot = 1024;
  it.program = "~/engines/llama-server";
  it.parts = {{{"-m", "~/" + std::string(90, 'p')}, "the model"}, {{"-np", "4"}, "parallel"}};
  it.memory.weights_bytes = 1'000'000'000;
  it.memory.kv_bytes = 2'000'000'000;
  it.memory.kv_tokens = 4096;
  it.memory.key_type = it.memory.value_type = "f16";
  it.memory.prompt_cache_bytes_max = 500'000'000;
  it.machine_bytes = 16'000'000'000;
  return it;
}

TEST(Explain, TellsTheSumAndWhetherItFits) {
  Explanation it = sample();
  EXPECT_NE(explain_text(it).find("at most 3.5 GB"), std::string::npos) << explain_text(it);
  EXPECT_EQ(explain_text(it).find("does not fit"), std::string::npos);
  it.machine_bytes = 2'900'000'000;
  EXPECT_NE(explain_text(it).find("does not fit"), std::string::npos);
  it.memory.kv_bytes.reset();
  EXPECT_NE(explain_text(it).find("at least 1.5 GB"), std::string::npos);
  EXPECT_NE(explain_text(it).find("unknown"), std::string::npos);
}

TEST(Explain, StaysInEightyColumns) {
  Explanation it = sample();
  it.parts[0].words[1] = "~/" + std::string(60, 'p');
  std::istringstream lines(explain_text(it));
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
}

TEST(Explain, IsJsonForPrograms) {
  const auto json = boost::json::parse(explain_json(sample())).as_object();
  EXPECT_EQ(json.at("engine").as_string(), "llama-cpu");
  EXPECT_EQ(json.at("launch").as_array().size(), 2u);
  EXPECT_EQ(json.at("rejected").as_array().size(), 1u);
  EXPECT_EQ(json.at("memory").as_object().at("sum_bytes_max").to_number<std::uint64_t>(),
            3'500'000'000u);
}

TEST(Config, ShowsEverySettingInEightyColumnsWithItsSource) {
  const std::string table = config_table(
      settings_of("port = 1\nllama_args = \"" + std::string(40, 'a') + " " + std::string(45, 'b') +
                  "\"\n[models.m]\npin = true\n[models.m.defaults]\ntemperature = 0.5\n"));
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
  for (const Option& option : options())
    EXPECT_NE(table.find(key_of(option) + " "), std::string::npos) << key_of(option);
  EXPECT_NE(table.find("[models.\"m\"]\npin"), std::string::npos) << table;
  EXPECT_NE(table.find("settings file: /home/of/werk.toml\n"), std::string::npos) << table;
  EXPECT_NE(table.find("defaults.temperature"), std::string::npos) << table;
}

TEST(Config, InJsonValuesHaveTheirTypes) {
  const auto json =
      boost::json::parse(config_json(settings_of("port = 1\nallow_host = [\"a\", \"b\"]\n"
                                                 "[models.m]\nparallel = 2\n"
                                                 "[models.m.defaults]\nstop = [\"x\"]\n")))
          .as_object();
  const auto& nodes = json.at("settings").as_object();
  EXPECT_EQ(nodes.at("port").as_object().at("value"), 1);
  EXPECT_EQ(nodes.at("port").as_object().at("source"), "werk.toml:1");
  EXPECT_EQ(nodes.at("allow_host").as_object().at("value").as_array().size(), 2u);
  EXPECT_TRUE(nodes.at("threads").as_object().at("value").is_null());
  EXPECT_EQ(nodes.at("allow_unauthenticated").as_object().at("value"), false);
  const auto& model = json.at("models").as_object().at("m").as_object();
  EXPECT_EQ(model.at("parallel").as_object().at("value"), 2);
  EXPECT_TRUE(model.at("defaults.stop").as_object().at("value").is_array());
  EXPECT_FALSE(model.contains("threads")) << "the node's";
}

TEST(Rows, ALongValueGoesOnBelowItselfAndNoWordIsBroken) {
  std::string out;
  append_row(out, {0, 3, 5}, "key", "one\n" + std::string(70, 'x') + " yyyyyyy", "note");
  EXPECT_EQ(out, "key  one\n     " + std::string(70, 'x') + "\n     yyyyyyy  note\n");
  out.clear();
  append_row(out, {0, 3, 5}, "key", std::string(90, 'x'), "note");
  EXPECT_EQ(out, "key  " + std::string(90, 'x') + "\n            note\n");
}

}  // namespace
}  // namespace werk::app
