// A test for each rule of precedence, over every option there is: a new one is tested by standing
// in the table. What counts is looked at in Settings itself, not in what was given.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <fstream>
#include <map>

#include "tests/support/temporary_folder.hpp"
#include "werk/app/settings.hpp"

namespace werk::app {
namespace {

const test::TemporaryFolder& files() {
  static const test::TemporaryFolder folder;
  return folder;
}

// The nth of three texts that the option takes, none of them its default; neighbours differ.
std::string sample(const Option& option, std::size_t n) {
  const std::string_view takes = option.takes;
  if (option.shape == Shape::flag) return "";
  if (option.key == "body_limit_bytes") return fmt::to_string(2000 + n);
  if (takes == "N") return fmt::to_string(3 + n);
  if (takes == "LAYERS") return fmt::to_string(n);
  if (takes == "DURATION") return fmt::format("{}s", n);
  if (takes == "MODE") return n == 2 ? "on" : "off";
  if (takes == "TYPE") return std::array{"", "q8_0", "q4_0", "f16"}.at(n);
  if (takes == "LEVEL") return std::array{"", "debug", "warn", "error"}.at(n);
  if (takes == "NAME=MODEL") return fmt::format("name{0}=model{0}", n);
  if (takes == "NAME=URL") return fmt::format("lab=http://10.0.0.{}/v1", n);
  if (takes == "WORDS") return fmt::format("--word {}", n);
  if (option.flag == "--backend")
    return std::array{"", "llama-cpu", "llama-cuda", "llama-rocm"}.at(n);
  if (option.key == "api_keys_file") {
    const std::filesystem::path path = files() / fmt::format("keys{}", n);
    std::ofstream(path) << "key\n";
    ::chmod(path.c_str(), 0600);
    return path.string();
  }
  return fmt::format("/text{}", n);
}

// The same as an entry of the file.
std::string entry(const std::string& key, const Option& option, std::size_t n) {
  const std::string value = sample(option, n);
  if (option.shape == Shape::flag) return key + " = true\n";
  if (option.takes == "N") return fmt::format("{} = {}\n", key, value);
  if (option.takes == "NAME=MODEL")
    return fmt::format("{} = {{ name{} = \"model{}\" }}\n", key, n, n);
  if (option.takes == "NAME=URL")
    return fmt::format("{} = {{ lab = {{ url = \"http://10.0.0.{}\" }} }}\n", key, n);
  if (option.shape == Shape::repeated) return fmt::format("{} = [\"{}\"]\n", key, value);
  return fmt::format("{} = \"{}\"\n", key, value);
}

struct Given {
  std::optional<std::size_t> flag;
  std::optional<std::size_t> variable;
  std::string file;
};

Settings read(const Option& option, const Given& given) {
  std::vector<GivenFlag> flags;
  if (given.flag) flags.push_back({std::string(option.flag), sample(option, *given.flag)});
  const Environment environment = [&](std::string_view name) -> std::optional<std::string> {
    if (!given.variable || name != option.variable) return std::nullopt;
    return sample(option, *given.variable);
  };
  ConfigFile file = parse_config(given.file, "/somewhere/werk.toml");
  file.place = ConfigFile::Place::named;
  Result<Settings> settings = read_settings(flags, environment, std::move(file));
  EXPECT_TRUE(settings) << settings.error().message;
  for (const Fault& fault : settings->file.faults) ADD_FAILURE() << fault.message;
  return *settings;
}

std::string first_line(std::string text) { return text.substr(0, text.find('\n')); }

// Runs the check for every option to which it applies, at least one.
template <class Applies, class Check>
void for_each(Applies applies, Check check) {
  std::size_t checked = 0;
  for (const Option& option : options()) {
    if (!applies(option)) continue;
    SCOPED_TRACE(key_of(option));
    check(option);
    ++checked;
  }
  EXPECT_GT(checked, 0u);
}

bool any(const Option&) { return true; }
bool is_in_file(const Option& option) { return option.key != kNotInFile; }
bool has_variable(const Option& option) { return !option.variable.empty(); }
bool has_flag(const Option& option) { return !option.flag.empty(); }
bool is_of_models(const Option& option) { return option.access.set_of_model != nullptr; }

std::string file_with(const Option& option, std::size_t n) {
  return is_in_file(option) ? entry(key_of(option), option, n) : "";
}

void expect_shown(const Option& option, const Given& given, std::size_t n,
                  std::string_view source) {
  const Settings settings = read(option, given);
  const std::string wanted = option.shape == Shape::flag ? "true"
                             : option.takes == "KEY"     ? "(set)"
                                                         : sample(option, n);
  EXPECT_EQ(first_line(option.access.show(settings)), wanted);
  const auto found = settings.sources.find(key_of(option));
  ASSERT_NE(found, settings.sources.end());
  EXPECT_EQ(found->second.text, source);
}

TEST(Precedence, WithoutAnyItIsTheDefault) {
  for_each(any, [](const Option& option) {
    const Settings settings = read(option, {});
    EXPECT_FALSE(settings.sources.contains(key_of(option)));
    const std::string shown = option.access.show(settings);
    EXPECT_EQ(shown, option.access.show(Settings{}));
    const bool tells = option.shape == Shape::flag || shown != sample(option, 1);
    EXPECT_TRUE(tells) << "the samples prove nothing";
  });
}

TEST(Precedence, TheFileAloneCounts) {
  for_each(is_in_file, [](const Option& option) {
    expect_shown(option, {{}, {}, "\n" + file_with(option, 1)}, 1, "/somewhere/werk.toml:2");
  });
}

TEST(Precedence, AVariableBeatsTheFile) {
  for_each(has_variable, [](const Option& option) {
    expect_shown(option, {{}, 2, file_with(option, 1)}, 2, option.variable);
  });
}

TEST(Precedence, AFlagBeatsVariableAndFile) {
  for_each(has_flag, [](const Option& option) {
    expect_shown(option, {3, 2, file_with(option, 1)}, 3, option.flag);
  });
}

TEST(Precedence, AModelsOwnBeatsTheTopLevelAndNothingElse) {
  for_each(is_of_models, [](const Option& option) {
    const std::string key = model_key_of(option);
    const std::string file =
        file_with(option, 1) + "[models.\"some/model\"]\n" + entry(key, option, 2);
    const Settings by_file = read(option, {{}, {}, file});
    EXPECT_EQ(option.access.show(by_file), sample(option, 1));
    const ModelSettings own = settings_of_model(by_file, "some/model");
    EXPECT_EQ(option.access.show_of_model(own), sample(option, 2));
    EXPECT_EQ(own.sources.at(key).text, "/somewhere/werk.toml:3");
    const ModelSettings other = settings_of_model(by_file, "other");
    EXPECT_EQ(option.access.show_of_model(other), sample(option, 1));

    Given given{{}, {}, file};
    (has_variable(option) ? given.variable : given.flag) = 3;
    const ModelSettings overruled = settings_of_model(read(option, given), "some/model");
    EXPECT_EQ(option.access.show_of_model(overruled), sample(option, 3));
    EXPECT_FALSE(overruled.sources.contains(key));
  });
}

TEST(PrecedenceOfAliases, ThoseOfTheFileStandBehindThoseOfTheCommandLine) {
  const std::vector<GivenFlag> flags = {{"--alias", "a=1"}};
  const Environment none = [](std::string_view) { return std::nullopt; };
  const auto settings =
      read_settings(flags, none, parse_config("[aliases]\n\"z-*\" = \"2\"\na = \"3\"\n", "f"));
  ASSERT_TRUE(settings);
  ASSERT_EQ(settings->aliases.size(), 3u);
  EXPECT_EQ(settings->aliases[0].model, "1");
  EXPECT_EQ(settings->aliases[1].pattern, "z-*") << "the file's own order counts";
  EXPECT_EQ(settings->aliases[2].model, "3");
}

}  // namespace
}  // namespace werk::app
