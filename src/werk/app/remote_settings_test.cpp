#include "werk/app/remote_settings.hpp"

#include <gtest/gtest.h>

#include "werk/app/settings.hpp"

namespace werk::app {
namespace {

namespace remote = engine::remote;

Result<Settings> read(const std::string& text, std::vector<GivenFlag> flags = {}) {
  const Environment none = [](std::string_view) { return std::nullopt; };
  return read_settings(flags, none, parse_config(text, "/home/werk.toml"));
}

std::vector<std::string> faults_of(const std::string& text) {
  std::vector<std::string> faults;
  const auto settings = read(text);
  if (!settings) return {settings.error().message};
  for (const Fault& fault : settings->file.faults)
    faults.push_back(std::to_string(fault.line) + ": " + fault.message);
  return faults;
}

TEST(RemoteSettings, ATableOfTheFileIsARemote) {
  const auto settings = read(
      "[remotes.lab]\nurl = \"https://lab.example/v1\"\nkey_env = \"LAB_KEY\"\n"
      "models = [\"a\", \"b\", \"a\"]\nparallel = 4\nsilence_timeout = \"90s\"\nkind = \"openai\"\n"
      "[remotes.home-2]\nurl = \"http://10.0.0.5:8000\"\n");
  ASSERT_TRUE(settings);
  EXPECT_TRUE(settings->file.faults.empty());
  ASSERT_EQ(settings->remotes.size(), 2u);
  const RemoteEntry& lab = settings->remotes[0];
  EXPECT_EQ(lab.name, "lab");
  EXPECT_EQ(lab.url.text(), "https://lab.example/v1");
  EXPECT_EQ(lab.key_env, "LAB_KEY");
  EXPECT_EQ(lab.models, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(lab.parallel, 4u);
  EXPECT_EQ(lab.silence, std::chrono::seconds(90));
  EXPECT_EQ(lab.kind, remote::PeerKind::openai);
  EXPECT_EQ(lab.source, "werk.toml:1");
  const RemoteEntry& home = settings->remotes[1];
  EXPECT_EQ(home.url.text(), "http://10.0.0.5:8000/v1");
  EXPECT_FALSE(home.key_env);
  EXPECT_TRUE(home.models.empty());
  EXPECT_EQ(home.parallel, 0u);
  EXPECT_EQ(home.kind, remote::PeerKind::unknown);
  EXPECT_EQ(settings->sources.at("remotes").text, "werk.toml:1");
}

TEST(RemoteSettings, EveryFaultNamesItsLineAndKey) {
  const std::pair<const char*, const char*> kCases[] = {
      {"remotes = 3\n", "1: remotes takes tables [remotes.NAME], not a whole number"},
      {"[remotes]\nlab = \"http://a\"\n",
       "2: remotes.lab is a string; a remote is a table [remotes.NAME]"},
      {"[remotes.\"a/b\"]\nurl = \"http://a\"\n",
       "1: \"a/b\" can't name a remote; letters, digits, '-', '_' and '.' can"},
      {"[remotes.lab]\nparallel = 2\n", "1: remotes.lab lacks its url"},
      {"[remotes.lab]\nurl = 7\n", "2: remotes.lab.url takes a string, not a whole number"},
      {"[remotes.lab]\nurl = \"lab.example\"\n",
       "2: remotes.lab.url takes a URL such as http://127.0.0.1:8000/v1: it begins with neither "
       "http:// nor https://"},
      {"[remotes.lab]\nurl = \"http://a\"\nkye_env = \"X\"\n",
       "3: remotes.lab.kye_env is no setting; did you mean key_env?"},
      {"[remotes.lab]\nurl = \"http://a\"\nzz = 1\n",
       "3: remotes.lab.zz is no setting; a remote has url, key_env, models, parallel, "
       "silence_timeout, kind"},
      {"[remotes.lab]\nurl = \"http://a\"\nkey = \"sk-1\"\n",
       "3: remotes.lab.key can't stand here, where others may read it: name the environment "
       "variable that holds it by key_env"},
      {"[remotes.lab]\nurl = \"http://a\"\nkey_env = \"sk-1 2\"\n",
       "3: remotes.lab.key_env takes the name of an environment variable"},
      {"[remotes.lab]\nurl = \"http://a\"\nmodels = \"a\"\n",
       "3: remotes.lab.models takes a list of strings, not a string"},
      {"[remotes.lab]\nurl = \"http://a\"\nmodels = []\n",
       "3: remotes.lab.models takes at least one id; without it the server's own list counts"},
      {"[remotes.lab]\nurl = \"http://a\"\nmodels = [1]\n",
       "3: remotes.lab.models takes a list of strings; an element is a whole number"},
      {"[remotes.lab]\nurl = \"http://a\"\nparallel = 0\n",
       "3: remotes.lab.parallel takes a whole number from 1 to 10000, not \"0\""},
      {"[remotes.lab]\nurl = \"http://a\"\nsilence_timeout = \"0\"\n",
       "3: remotes.lab.silence_timeout takes a duration above zero"},
  };
  for (const auto& [text, fault] : kCases) {
    const auto faults = faults_of(text);
    ASSERT_EQ(faults.size(), 1u) << text;
    EXPECT_EQ(faults.front(), fault);
  }
  EXPECT_EQ(faults_of("[remotes.lab]\nurl = \"http://a\"\nkind = \"wrek\"\n").size(), 1u);
}

TEST(RemoteSettings, AnUnsoundRemoteIsLeftOutAndTheOthersCount) {
  const auto settings =
      read("[remotes.bad]\nurl = 7\n[remotes.good]\nurl = \"http://a.example\"\n");
  ASSERT_TRUE(settings);
  ASSERT_EQ(settings->remotes.size(), 1u);
  EXPECT_EQ(settings->remotes.front().name, "good");
}

TEST(RemoteSettings, TheFlagAddsRemotesAndWinsOverATablesUrlAlone) {
  const auto settings =
      read("[remotes.lab]\nurl = \"http://old.example\"\nkey_env = \"LAB_KEY\"\n",
           {{"--remote", "lab=http://new.example:1"}, {"--remote", "more=http://[::1]:2/api/v1"}});
  ASSERT_TRUE(settings);
  ASSERT_EQ(settings->remotes.size(), 2u);
  EXPECT_EQ(settings->remotes[0].url.text(), "http://new.example:1/v1");
  EXPECT_EQ(settings->remotes[0].key_env, "LAB_KEY");
  EXPECT_EQ(settings->remotes[1].name, "more");
  EXPECT_EQ(show_remotes(settings->remotes),
            "lab=http://new.example:1/v1\nmore=http://[::1]:2/api/v1");
}

TEST(RemoteSettings, AFlagThatIsNoNameAndUrlIsRefused) {
  for (const char* value : {"http://a.example", "=http://a", "a/b=http://a", "lab="}) {
    const auto settings = read("", {{"--remote", value}});
    ASSERT_FALSE(settings) << value;
    EXPECT_TRUE(settings.error().message.starts_with("--remote takes "))
        << settings.error().message;
  }
}

}  // namespace
}  // namespace werk::app
