// Names, addresses, answers and choices of a model hub, without one.
#include "werk/app/hub.hpp"

#include <gtest/gtest.h>

#include <map>

#include "werk/app/hub_download.hpp"

namespace werk::app {
namespace {

using namespace std::chrono_literals;

const std::string kDigest(64, 'a');

HubFile file(std::string path, std::uint64_t size_bytes = 1000) {
  return {std::move(path), size_bytes, kDigest};
}

std::vector<HubFile> files(std::initializer_list<std::string> paths) {
  std::vector<HubFile> all;
  for (const std::string& path : paths) all.push_back(file(path, 1000 * (all.size() + 1)));
  return all;
}

HubName name(std::string quantization = {}) { return {"org/repo", std::move(quantization)}; }

std::string chosen(const std::vector<HubFile>& all, std::string quantization = {},
                   std::string_view wanted = {}) {
  const auto choice = choose_files(all, name(std::move(quantization)), wanted);
  if (!choice) return "error: " + choice.error().message;
  std::string text;
  for (const HubFile& one : choice->weights) text += one.path + " ";
  if (choice->projector) text += "+ " + choice->projector->path + " ";
  text.pop_back();
  return text;
}

HubAccess access(const std::map<std::string, std::string>& variables,
                 const std::map<std::string, std::string>& present = {}) {
  const auto find = [](const auto& in, std::string_view key) -> std::optional<std::string> {
    const auto found = in.find(std::string(key));
    return found == in.end() ? std::nullopt : std::optional(found->second);
  };
  const auto read = hub_access([&](std::string_view key) { return find(variables, key); },
                               [&](const std::string& path) { return find(present, path); });
  EXPECT_TRUE(read) << read.error().message;
  return read.value_or(HubAccess());
}

TEST(HubName, IsARepositoryAndPerhapsAQuantization) {
  EXPECT_TRUE(is_hub_name("hf:a/b"));
  EXPECT_FALSE(is_hub_name("smollm2"));
  EXPECT_EQ(parse_hub_name("hf:org/Re-po_1.5")->repository, "org/Re-po_1.5");
  const auto whole = parse_hub_name("hf:org/repo:Q4_K_M");
  EXPECT_EQ(whole->repository, "org/repo");
  EXPECT_EQ(whole->quantization, "Q4_K_M");
}

TEST(HubName, ThatNamesNoRepositoryIsToldTheForm) {
  for (const char* wrong : {"hf:", "hf:org", "hf:/repo", "hf:org/", "hf:org/repo/file.gguf",
                            "hf:org/repo:", "hf:../..", "hf:org/..", "hf:o rg/repo", "hf:org/re?po",
                            "hf:org/repo:Q4/..", "hf:org/re\npo", "hf:org/%2e%2e", "hf:.a/b"}) {
    const auto read = parse_hub_name(wrong);
    ASSERT_FALSE(read) << wrong;
    EXPECT_EQ(read.error().code, ErrorCode::invalid_request);
    EXPECT_NE(read.error().message.find("hf:ORG/REPO"), std::string::npos);
    EXPECT_EQ(read.error().message.find('\n'), std::string::npos);
  }
}

TEST(HubName, OfARevisionHasNoOddParts) {
  for (const char* right : {"main", "refs/pr/1", "v1.0", "feature/a b"}) {
    EXPECT_TRUE(check_revision(right)) << right;
  }
  for (const char* wrong : {"", "..", "a/../b", "a//b", "a\nb", "/a"}) {
    EXPECT_FALSE(check_revision(wrong)) << wrong;
  }
}

TEST(HubAddress, EncodesWhatIsNotPlain) {
  HubAccess hub;
  hub.endpoint = "https://hub.test";
  EXPECT_EQ(revision_url(hub, "o/r", "refs/pr/1"),
            "https://hub.test/api/models/o/r/revision/refs%2Fpr%2F1");
  EXPECT_EQ(tree_url(hub, "o/r", "abc"), "https://hub.test/api/models/o/r/tree/abc?recursive=true");
  EXPECT_EQ(file_url(hub, "o/r", "abc", "a b/c?#%.gguf"),
            "https://hub.test/o/r/resolve/abc/a%20b/c%3F%23%25.gguf");
}

TEST(HubAddress, ComesFromTheVariablesOfTheHubsOwnTools) {
  EXPECT_EQ(access({}).endpoint, "https://huggingface.co");
  EXPECT_EQ(access({{"HF_ENDPOINT", " http://mirror:80/hf/// "}}).endpoint, "http://mirror:80/hf");
  for (const char* wrong :
       {"ftp://x", "mirror", "https://a b", "file:///etc", "https://me:secret@x"}) {
    const auto read = hub_access(
        [&](std::string_view key) -> std::optional<std::string> {
          if (key == "HF_ENDPOINT") return wrong;
          return std::nullopt;
        },
        [](const std::string&) { return std::nullopt; });
    ASSERT_FALSE(read) << wrong;
    EXPECT_NE(read.error().message.find("HF_ENDPOINT"), std::string::npos);
    EXPECT_EQ(read.error().message.find("secret"), std::string::npos);
  }
  EXPECT_EQ(access({{"SSL_CERT_FILE", "/a"}}).ca_file, "/a");
  EXPECT_EQ(access({{"SSL_CERT_FILE", "/a"}, {"CURL_CA_BUNDLE", "/b"}}).ca_file, "/b");
}

TEST(HubToken, IsTheVariablesElseTheFilesOfTheHubsOwnTool) {
  EXPECT_EQ(access({}).token, "");
  EXPECT_EQ(access({{"HF_TOKEN", " t \n"}, {"HF_HOME", "/h"}}, {{"/h/token", "f"}}).token, "t");
  EXPECT_EQ(access({{"HF_HOME", "/h"}, {"HOME", "/u"}}, {{"/h/token", "f\n"}}).token, "f");
  EXPECT_EQ(access({{"HOME", "/u"}}, {{"/u/.cache/huggingface/token", "u"}}).token, "u");
  EXPECT_EQ(
      access({{"XDG_CACHE_HOME", "/x"}, {"HOME", "/u"}}, {{"/x/huggingface/token", "x"}}).token,
      "x");
  EXPECT_EQ(access({{"HF_TOKEN_PATH", "/p"}, {"HF_HOME", "/h"}}, {{"/p", "p"}}).token, "p");
}

TEST(HubToken, ThatCouldBreakAHeaderIsRefusedAndNotShown) {
  for (const char* wrong : {"a b", "secret\r\nX: y", "secret\x01"}) {
    const auto read = hub_access(
        [&](std::string_view key) -> std::optional<std::string> {
          if (key == "HF_TOKEN") return wrong;
          return std::nullopt;
        },
        [](const std::string&) { return std::nullopt; });
    ASSERT_FALSE(read);
    EXPECT_NE(read.error().message.find("HF_TOKEN"), std::string::npos);
    EXPECT_EQ(read.error().message.find("secret"), std::string::npos);
  }
}

TEST(HubAnswer, OfARevisionHasACommitAndALicence) {
  const std::string commit(40, 'c');
  const auto read =
      parse_revision(R"({"x":[1],"sha":")" + commit + R"(","cardData":{"license":"mit"}})");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->commit, commit);
  EXPECT_EQ(read->licence, "mit");
  EXPECT_EQ(parse_revision(R"({"sha":")" + commit + R"(","cardData":{"license":["a"]}})")->licence,
            "");
  for (const char* wrong : {"", "[]", "{}", "<html>", R"({"sha":"../x"})", R"({"sha":7})"}) {
    const auto refused = parse_revision(wrong);
    ASSERT_FALSE(refused) << wrong;
    EXPECT_NE(refused.error().message.find("HF_ENDPOINT"), std::string::npos);
  }
}

TEST(HubAnswer, OfATreeListsFilesWithSizeAndDigest) {
  std::vector<HubFile> all;
  ASSERT_TRUE(parse_tree(R"([{"type":"directory","path":"a","size":0},
      {"type":"file","path":"README.md","size":12,"oid":"b"},
      {"type":"file","path":"a/m.gguf","size":130,"lfs":{"oid":")" +
                             kDigest + R"(","size":5000}}])",
                         all));
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].path, "README.md");
  EXPECT_EQ(all[0].size_bytes, 12u);
  EXPECT_EQ(all[0].sha256, "");
  EXPECT_EQ(all[1].size_bytes, 5000u) << "of the file, not of the pointer to it";
  EXPECT_EQ(all[1].sha256, kDigest);
}

TEST(HubAnswer, WithPathsThatLeadElsewhereLosesThoseFilesOnly) {
  std::vector<HubFile> all;
  ASSERT_TRUE(parse_tree(R"([{"type":"file","path":"../../x.gguf","size":1},
      {"type":"file","path":"/x.gguf","size":1},{"type":"file","path":"a\u0000.gguf","size":1},
      {"type":"file","path":"a//b.gguf","size":1},{"type":"file","path":"ok.gguf","size":1}])",
                         all));
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].path, "ok.gguf");
}

TEST(HubAnswer, ThatIsNoListingIsRefused) {
  for (const char* wrong :
       {"", "{}", "[7]", R"([{"type":"file","path":"a"}])",
        R"([{"type":"file","path":"a","size":-1}])", R"([{"type":"file","path":"a","size":1e300}])",
        R"([{"type":"file","path":"a","size":9223372036854775807}])",
        R"([{"type":"file","path":"a","size":1,"lfs":{"oid":"short","size":1}}])"}) {
    std::vector<HubFile> all;
    EXPECT_FALSE(parse_tree(wrong, all)) << wrong;
  }
}

TEST(HubAnswer, OfASearchGivesNamesOrNothing) {
  EXPECT_EQ(parse_repositories(R"([{"id":"a/b"},{"id":7},{"id":"no name"},3,{"id":"c/d"}])"),
            (std::vector<std::string>{"a/b", "c/d"}));
  EXPECT_TRUE(parse_repositories("<html>").empty());
  EXPECT_TRUE(parse_repositories(R"({"id":"a/b"})").empty());
}

TEST(HubAnswer, LeadsToTheNextPageAtTheSameHub) {
  HubAccess hub;
  hub.endpoint = "https://mirror.test/hf";
  EXPECT_EQ(next_page(hub, "<https://hub.test/api/models/o/r/tree/c?cursor=x>; rel=\"next\""),
            "https://mirror.test/hf/api/models/o/r/tree/c?cursor=x");
  EXPECT_EQ(next_page(hub,
                      "<https://a/api/models/1>; rel=\"prev\", <https://a/api/models/2>; "
                      "rel=\"next\""),
            "https://mirror.test/hf/api/models/2");
  for (const char* none : {"", "<", "<>", "<https://x/api/models/1>; rel=\"last\"",
                           "<https://x/other>; rel=\"next\"", "rel=\"next\""}) {
    EXPECT_EQ(next_page(hub, none), "") << none;
  }
}

TEST(HubChoice, PrefersQ4KMThenQ80ThenTheOnlyOne) {
  EXPECT_EQ(chosen(files({"m-Q2_K.gguf", "m-Q8_0.gguf", "m-Q4_K_M.gguf"})), "m-Q4_K_M.gguf");
  EXPECT_EQ(chosen(files({"m-Q2_K.gguf", "m.q8_0.gguf", "README.md"})), "m.q8_0.gguf");
  EXPECT_EQ(chosen(files({"README.md", "some-model.gguf"})), "some-model.gguf");
}

TEST(HubChoice, ThatIsOpenListsWhatThereIsAndWhatToType) {
  const std::string text = chosen(files({"m-Q2_K.gguf", "m-Q5_K_M.gguf"}));
  EXPECT_NE(text.find("Q2_K (1.0 kB), Q5_K_M (2.0 kB)"), std::string::npos) << text;
  EXPECT_NE(text.find("`werk pull hf:org/repo:Q2_K`"), std::string::npos) << text;
  const std::string same = chosen(files({"a-Q4_K_M.gguf", "b-Q4_K_M.gguf"}));
  EXPECT_NE(same.find("--file a-Q4_K_M.gguf"), std::string::npos) << same;
}

TEST(HubChoice, TakesTheQuantizationThatIsNamed) {
  const auto all = files({"m-Q4_K_M.gguf", "m-UD-Q4_K_XL.gguf", "m-bf16.gguf", "Q6_K/m.gguf"});
  EXPECT_EQ(chosen(all, "bf16"), "m-bf16.gguf");
  EXPECT_EQ(chosen(all, "UD-Q4_K_XL"), "m-UD-Q4_K_XL.gguf");
  EXPECT_EQ(chosen(all, "q4_k_xl"), "m-UD-Q4_K_XL.gguf");
  EXPECT_EQ(chosen(all, "Q6_K"), "Q6_K/m.gguf");
  const std::string none = chosen(all, "Q3_K_S");
  EXPECT_NE(none.find("org/repo has no Q3_K_S; there is: Q4_K_M"), std::string::npos) << none;
}

TEST(HubChoice, TakesAFileByPathOrByTheEndOfOne) {
  const auto all = files({"a/m-Q4_K_M.gguf", "b/m-Q4_K_M.gguf", "mmproj-F16.gguf"});
  EXPECT_EQ(chosen(all, "", "b/m-Q4_K_M.gguf"), "b/m-Q4_K_M.gguf + mmproj-F16.gguf");
  EXPECT_NE(chosen(all, "", "m-Q4_K_M.gguf").find("several"), std::string::npos);
  EXPECT_NE(chosen(all, "", "a/m-Q4_K_N.gguf").find("did you mean: a/m-Q4_K_M.gguf"),
            std::string::npos);
  EXPECT_NE(chosen(all, "", "mmproj-F16.gguf").find("comes with its model"), std::string::npos);
}

TEST(HubChoice, TakesSplitSetsWholeAndInOrder) {
  const auto all = files({"Q4_K_M/m-00002-of-00003.gguf", "Q4_K_M/m-00001-of-00003.gguf",
                          "Q4_K_M/m-00003-of-00003.gguf", "m-Q2_K.gguf"});
  const std::string whole =
      "Q4_K_M/m-00001-of-00003.gguf Q4_K_M/m-00002-of-00003.gguf Q4_K_M/m-00003-of-00003.gguf";
  EXPECT_EQ(chosen(all), whole);
  EXPECT_EQ(chosen(all, "", "m-00003-of-00003.gguf"), whole);
  const std::string part = chosen(files({"m-Q8_0-00001-of-00002.gguf"}));
  EXPECT_NE(part.find("of the 2 files"), std::string::npos) << part;
}

TEST(HubChoice, BringsTheProjectorOfTheModelsFolderInF16) {
  EXPECT_EQ(
      chosen(files({"m-Q8_0.gguf", "mmproj-F32.gguf", "mmproj-BF16.gguf", "mmproj-F16.gguf"})),
      "m-Q8_0.gguf + mmproj-F16.gguf");
  EXPECT_EQ(chosen(files({"m-Q8_0.gguf", "m.mmproj-Q8_0.gguf", "other/mmproj-F16.gguf"})),
            "m-Q8_0.gguf + m.mmproj-Q8_0.gguf");
  EXPECT_EQ(chosen(files({"x/m-Q8_0.gguf", "x/mmproj-Q8_0.gguf", "mmproj-F16.gguf"})),
            "x/m-Q8_0.gguf + x/mmproj-Q8_0.gguf");
}

TEST(HubChoice, OfARepositoryWithoutModelsSaysWhatIsThere) {
  const std::string text =
      chosen(files({"model.safetensors", "config.json", "mmproj-F16.gguf", "imatrix.gguf"}));
  EXPECT_NE(text.find("no GGUF model but 4 files (.safetensors, .json, .gguf)"), std::string::npos)
      << text;
  EXPECT_NE(text.find("repo-GGUF"), std::string::npos);
  EXPECT_NE(chosen({}).find("nothing at all"), std::string::npos);
}

TEST(HubChoice, NamesTheModelAsItWasAskedFor) {
  const auto id = [](std::initializer_list<std::string> all, std::string_view wanted = {}) {
    const auto choice = choose_files(files(all), name(), wanted);
    return choice ? hub_model_id("org/repo", *choice) : choice.error().message;
  };
  EXPECT_EQ(id({"m-Q2_K.gguf", "m-Q4_K_M.gguf"}), "org/repo:Q4_K_M");
  EXPECT_EQ(id({"whole.gguf"}), "org/repo");
  EXPECT_EQ(id({"a-Q8_0.gguf", "b-Q8_0.gguf"}, "b-Q8_0.gguf"), "org/repo:b-Q8_0");
}

TEST(HubDownload, ReadsWhichPartOfAFileComes) {
  const auto span = parse_content_range("bytes 100-999/1000");
  ASSERT_TRUE(span);
  EXPECT_EQ(span->first, 100u);
  EXPECT_EQ(span->whole_bytes, 1000u);
  EXPECT_FALSE(parse_content_range("bytes 0-1/*")->whole_bytes);
  for (const char* wrong : {"", "bytes", "bytes 1/2", "bytes 5-4/10", "bytes -1-2/3", "lines 1-2/3",
                            "bytes 1-2/x", "bytes 1-2", "bytes 99999999999999999999-1/2"}) {
    EXPECT_FALSE(parse_content_range(wrong)) << wrong;
  }
}

TEST(HubDownload, IsTriedAgainWithLongerAndLongerWaitsAndThenNoMore) {
  Patience patience;
  patience.tries = 5;
  patience.wait_max = 5s;
  Tries tries(patience);
  EXPECT_EQ(tries.next({}), 1s);
  EXPECT_EQ(tries.next({}), 2s);
  EXPECT_EQ(tries.next({}), 4s);
  EXPECT_EQ(tries.next({}), 5s);
  EXPECT_EQ(tries.next({}), std::nullopt);
}

TEST(HubDownload, GoesOnForAsLongAsEnoughComes) {
  Patience patience;
  patience.tries = 3;
  patience.progress_bytes = 100;
  Tries tries(patience);
  for (int i = 0; i < 50; ++i) {
    tries.came(100);
    EXPECT_EQ(tries.next({}), 1s);
  }
  tries.came(99);
  EXPECT_EQ(tries.next({}), 2s) << "too little to count";
  tries.came(1);
  EXPECT_EQ(tries.next({}), 1s) << "together it is enough";
}

TEST(HubDownload, WaitsAsLongAsTheHubAsksUnlessThatIsTooLong) {
  Tries tries{Patience()};
  EXPECT_EQ(tries.next(30s), 30s);
  EXPECT_EQ(tries.next(0s), 1s);
  EXPECT_EQ(tries.next(301s), std::nullopt);
}

}  // namespace
}  // namespace werk::app
