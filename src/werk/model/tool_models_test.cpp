#include "werk/model/tool_models.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "tests/support/temporary_folder.hpp"
#include "tests/support/tiny_gguf.hpp"

namespace werk::model {
namespace {

namespace fs = std::filesystem;

std::string digest_of(char c) { return std::string(64, c); }

std::string layer(std::string_view kind, char digest) {
  return R"({"mediaType":"application/vnd.ollama.image.)" + std::string(kind) +
         R"(","digest":"sha256:)" + digest_of(digest) + R"(","size":1})";
}

std::string manifest(const std::vector<std::string>& layers) {
  std::string text = R"({"schemaVersion":2,"config":{},"layers":[)";
  for (const std::string& one : layers) text += (text.ends_with('[') ? "" : ",") + one;
  return text + "]}";
}

class ToolModels : public testing::Test {
 protected:
  void write(const fs::path& name, std::string_view bytes) const {
    fs::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
  }
  void blob(char digest, std::uint64_t seed = 1) const {
    test::TinyGgufOptions options;
    options.seed = seed;
    write("o/blobs/sha256-" + digest_of(digest), test::tiny_gguf(options));
  }
  void ollama(const fs::path& name, const std::vector<std::string>& layers) const {
    write("o/manifests" / name, manifest(layers));
  }

  ToolScan scan() const {
    ToolFolders folders;
    folders.ollama = {folder_ / "o"};
    folders.lm_studio = {folder_ / "lm"};
    folders.hub = {folder_ / "hub"};
    folders.llama_cpp = {folder_ / "ll"};
    return scan_tools(folders);
  }
  // What it is called, or why it can't be used.
  std::map<std::string, std::string> found() const {
    std::map<std::string, std::string> found;
    const ToolScan all = scan();
    EXPECT_TRUE(all.notes.empty());
    for (const ToolModel& model : all.models) {
      EXPECT_EQ(model.plan.has_value(), model.unusable.empty());
      found[model.tool + " " + model.name] = model.plan ? "usable" : model.unusable;
    }
    return found;
  }

  test::TemporaryFolder folder_;
};

using Found = std::map<std::string, std::string>;

TEST_F(ToolModels, AreNoneWhereNoToolIs) { EXPECT_TRUE(found().empty()); }

TEST_F(ToolModels, OfOllamaAreCalledAsOllamaCallsThem) {
  blob('a');
  blob('b', 2);
  blob('c', 3);
  ollama("registry.ollama.ai/library/llama3.2/latest",
         {layer("model", 'a'), layer("template", 'f')});
  ollama("registry.ollama.ai/someone/coder/7b", {layer("model", 'b')});
  ollama("hf.co/org/repo-GGUF/Q4_K_M", {layer("license", 'f'), layer("model", 'c')});
  EXPECT_EQ(found(), (Found{{"Ollama llama3.2:latest", "usable"},
                            {"Ollama someone/coder:7b", "usable"},
                            {"Ollama hf.co/org/repo-GGUF:Q4_K_M", "usable"}}));
  const ToolScan all = scan();
  EXPECT_EQ(all.models[1].aliases, std::vector<std::string>{"llama3.2"});
  EXPECT_EQ(all.models[1].path, folder_ / "o/blobs" / ("sha256-" + digest_of('a')));
}

TEST_F(ToolModels, OfOllamaHaveTheProjectorOfTheirManifest) {
  blob('a');
  write("o/blobs/sha256-" + digest_of('b'), test::tiny_projector());
  ollama("registry.ollama.ai/library/llava/latest", {layer("model", 'a'), layer("projector", 'b')});
  const ToolScan all = scan();
  ASSERT_EQ(all.models.size(), 1u);
  ASSERT_TRUE(all.models[0].plan);
  EXPECT_TRUE(all.models[0].plan->projector);
}

TEST_F(ToolModels, OfOllamaThatCannotBeUsedSayWhy) {
  blob('a');
  const fs::path library = "registry.ollama.ai/library";
  ollama(library / "lora/latest", {layer("model", 'a'), layer("adapter", 'f')});
  ollama(library / "cloud/latest", {});
  test::GgufBuilder vision = test::tiny_model();
  vision.add_u32("llama.vision.block_count", 27);
  write("o/blobs/sha256-" + digest_of('d'), vision.bytes());
  ollama(library / "vision/latest", {layer("model", 'd')});
  ollama(library / "mlx/latest", {layer("tensor", 'a')});
  ollama(library / "gone/latest", {layer("model", 'e')});
  write("o/manifests" / library / "cut/latest", "{\"layers\":[");
  write("o/manifests" / library / "odd/latest", "[]");
  write("o/manifests" / library / "path/latest",
        R"({"layers":[{"mediaType":"application/vnd.ollama.image.model","digest":"../../x"}]})");
  write("o/manifests" / library / "types/latest",
        R"({"layers":[1,{"mediaType":2},)"
        R"({"mediaType":"application/vnd.ollama.image.model","digest":3}]})");
  write("o/manifests/.DS_Store", "x");
  write("o/manifests" / library / ".DS_Store", "x");
  const Found all = found();
  EXPECT_EQ(all.size(), 9u);
  EXPECT_NE(all.at("Ollama vision:latest").find("image encoder"), std::string::npos);
  EXPECT_NE(all.at("Ollama lora:latest").find("adapter"), std::string::npos);
  EXPECT_NE(all.at("Ollama cloud:latest").find("no weights"), std::string::npos);
  EXPECT_NE(all.at("Ollama mlx:latest").find("safetensors"), std::string::npos);
  EXPECT_NE(all.at("Ollama gone:latest").find("missing"), std::string::npos);
  for (const char* name : {"cut", "odd", "path", "types"}) {
    EXPECT_NE(all.at("Ollama " + std::string(name) + ":latest"), "usable") << name;
  }
}

TEST_F(ToolModels, WithOneBlobAreThereOnceWithAllTheirNames) {
  blob('a');
  const fs::path library = "registry.ollama.ai/library";
  ollama(library / "q/8b", {layer("model", 'a')});
  ollama(library / "q/latest", {layer("model", 'a')});
  write("hub/models--org--q/blobs/" + digest_of('a'), test::tiny_gguf());
  fs::create_directories(folder_ / "hub/models--org--q/snapshots/1");
  fs::create_symlink("../../blobs/" + digest_of('a'),
                     folder_ / "hub/models--org--q/snapshots/1/q.gguf");
  write("ll/other.gguf", test::tiny_gguf());
  fs::create_directories(folder_ / "lm/p/r");
  fs::create_hard_link(folder_ / "ll/other.gguf", folder_ / "lm/p/r/linked.gguf");
  const ToolScan all = scan();
  ASSERT_EQ(all.models.size(), 2u);
  EXPECT_EQ(all.models[0].name, "q:8b");
  EXPECT_EQ(all.models[0].aliases, (std::vector<std::string>{"q:latest", "q", "org/q:F32"}));
  EXPECT_EQ(all.models[1].name, "r");
  EXPECT_EQ(all.models[1].aliases, std::vector<std::string>{"other:F32"});
}

TEST_F(ToolModels, OfLmStudioAreCalledAsItsServerCallsThem) {
  write("lm/pub/Qwen-7B-GGUF/Qwen-7B-Q4_K_M.gguf", test::tiny_gguf());
  write("lm/pub/Qwen-7B-GGUF/Qwen-7B-Q8_0.gguf", test::tiny_gguf({.seed = 2}));
  write("lm/pub/One-GGUF/one-Q4_0.gguf", test::tiny_gguf({.seed = 3}));
  write("lm/pub/One-GGUF/mmproj-one-f16.gguf", test::tiny_projector());
  write("lm/other/one-gguf/one-Q4_0.gguf", test::tiny_gguf({.seed = 4}));
  write("lm/mlx-community/Big-4bit/model.safetensors", "x");
  write("lm/pub/Cut-GGUF/cut.gguf", "GGUF");
  const Found all = found();
  EXPECT_EQ(all.size(), 6u);
  for (const char* name : {"qwen-7b@q4_k_m", "qwen-7b@q8_0", "one@q4_0", "pub/one@q4_0"}) {
    EXPECT_EQ(all.at("LM Studio " + std::string(name)), "usable");
  }
  EXPECT_EQ(all.at("LM Studio big-4bit"), "It is no GGUF (safetensors).");
  EXPECT_TRUE(all.at("LM Studio pub/Cut-GGUF/cut.gguf").starts_with("The file is cut"));
}

TEST_F(ToolModels, OfTheHubAreThoseOfTheNewestRevision) {
  const auto snapshot = [&](const char* revision, const char* file, char digest,
                            std::uint64_t seed) {
    const fs::path repository = "hub/models--org--repo-GGUF";
    write(repository / "blobs" / digest_of(digest), test::tiny_gguf({.seed = seed}));
    const fs::path link = folder_ / repository / "snapshots" / revision / file;
    fs::create_directories(link.parent_path());
    fs::create_symlink("../../blobs/" + digest_of(digest), link);
  };
  snapshot("1", "m-Q4_0.gguf", 'a', 1);
  snapshot("2", "m-Q4_0.gguf", 'b', 2);
  snapshot("2", "m-Q8_0.gguf", 'c', 3);
  snapshot("2", "n-Q8_0.gguf", 'd', 4);
  write("hub/models--org--repo-GGUF/refs/main", "2");
  write("hub/models--org--torch/snapshots/1/pytorch_model.bin", "x");
  write("hub/models--org--nothing/snapshots/1/config.json", "{}");
  write("hub/datasets--org--x/snapshots/1/x.gguf", "x");
  EXPECT_EQ(found(), (Found{{"Hugging Face org/repo-GGUF:Q4_0", "usable"},
                            {"Hugging Face org/repo-GGUF:Q8_0", "usable"},
                            {"Hugging Face org/repo-GGUF:n-Q8_0", "usable"},
                            {"Hugging Face org/torch", "It is no GGUF (bin)."}}));
  EXPECT_EQ(fs::canonical(scan().models[0].path).filename(), digest_of('b'));
}

TEST_F(ToolModels, OfLlamaCppAreThoseOfItsManifestsAndOtherFiles) {
  write("ll/org_repo_m-Q4_0.gguf", test::tiny_gguf());
  write("ll/org_repo_mmproj-F16.gguf", test::tiny_projector());
  write("ll/manifest=org=repo=latest.json",
        R"({"ggufFile":{"rfilename":"m-Q4_0.gguf"},"mmprojFile":{"rfilename":"mmproj-F16.gguf"}})");
  write("ll/manifest=org=gone=Q4_0.json", R"({"ggufFile":{"rfilename":"gone.gguf"}})");
  write("ll/manifest=odd.json", "{}");
  write("ll/manifest=a=b=c.json", R"({"ggufFile":7})");
  write("ll/lone-Q8_0.gguf", test::tiny_gguf({.seed = 2}));
  write("ll/lone-Q8_0.gguf.downloadInProgress", "x");
  const ToolScan all = scan();
  ASSERT_EQ(all.models.size(), 2u);
  EXPECT_EQ(all.models[0].name, "lone:Q8_0");
  EXPECT_EQ(all.models[1].name, "org/repo:latest");
  EXPECT_TRUE(all.models[1].plan->projector);
}

ToolFolders folders_with(const std::map<std::string, std::string>& variables) {
  return tool_folders([variables](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
}

TEST(ToolFolders, AreTheToolsOwnDefaultsOrWhatTheirVariablesSay) {
  const ToolFolders usual = folders_with({{"HOME", "/u"}});
  EXPECT_EQ(usual.ollama.front(), "/u/.ollama/models");
  EXPECT_EQ(usual.ollama[1], "/usr/share/ollama/.ollama/models");
  EXPECT_EQ(usual.lm_studio,
            (std::vector<fs::path>{"/u/.lmstudio/models", "/u/.cache/lm-studio/models"}));
  EXPECT_EQ(usual.hub, std::vector<fs::path>{"/u/.cache/huggingface/hub"});
  EXPECT_EQ(usual.llama_cpp, std::vector<fs::path>{"/u/.cache/llama.cpp"});
  const ToolFolders named = folders_with({{"HOME", "/u"},
                                          {"OLLAMA_MODELS", "/o/"},
                                          {"HF_HOME", "/hf"},
                                          {"LLAMA_CACHE", "/l"},
                                          {"XDG_CACHE_HOME", "/c"}});
  EXPECT_EQ(named.ollama, std::vector<fs::path>{"/o/"}) << "Ollama looks nowhere else then";
  EXPECT_EQ(named.hub, std::vector<fs::path>{"/hf/hub"});
  EXPECT_EQ(named.llama_cpp, std::vector<fs::path>{"/l"});
  const ToolFolders cache = folders_with({{"XDG_CACHE_HOME", "/c"}, {"HF_HUB_CACHE", "/h"}});
  EXPECT_EQ(cache.hub, std::vector<fs::path>{"/h"});
  EXPECT_EQ(cache.llama_cpp, std::vector<fs::path>{"/c/llama.cpp"});
  EXPECT_TRUE(cache.lm_studio.empty());
}

}  // namespace
}  // namespace werk::model
