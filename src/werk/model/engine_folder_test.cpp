#include "werk/model/engine_folder.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/temporary_folder.hpp"

namespace werk::model {
namespace {

class EngineFolder : public ::testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name, std::ios::binary) << text;
  }
  static std::string safetensors(const std::string& table, std::size_t data_bytes) {
    std::string head(8, '\0');
    head[0] = static_cast<char>(table.size());
    return head + table + std::string(data_bytes, 'x');
  }
  void write_hugging_face() {
    write("config.json",
          R"({"model_type":"llama","torch_dtype":"float32","max_position_embeddings":2048,)"
          R"("num_hidden_layers":2,"hidden_size":64,"num_attention_heads":4,)"
          R"("num_key_value_heads":2})");
    write("model.safetensors",
          safetensors(R"({"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}})", 24));
    write("tokenizer.json", "{}");
    write("tokenizer_config.json", R"({"chat_template":"{% for m in messages %}{{ tools }}"})");
    write("modeling_evil.py", "print(1)");
  }
  void write_genai() {
    write("genai_config.json",
          R"({"model":{"type":"llama","context_length":8192,"decoder":{"filename":"model.onnx",)"
          R"("num_hidden_layers":30,"num_key_value_heads":3,"head_size":64}}})");
    write("model.onnx", "graph");
    write("model.onnx.data", "weights");
    write("tokenizer.json", "{}");
  }
  std::vector<std::string> names() {
    std::vector<std::string> all;
    const auto plan = plan_engine_folder(folder_.path());
    if (!plan) return {plan.error().message};
    for (const PlannedFile& file : plan->files) {
      all.push_back(std::string(name_of(file.role)) + " " + file.name);
    }
    return all;
  }
  std::string fault() {
    const auto plan = plan_engine_folder(folder_.path());
    return plan ? "none" : plan.error().message.substr(folder_.path().string().size());
  }

  test::TemporaryFolder folder_;
};

TEST_F(EngineFolder, OfHuggingFacesFormIsTakenWithoutItsCode) {
  write_hugging_face();
  EXPECT_TRUE(is_engine_folder(folder_.path()));
  EXPECT_EQ(names(), (std::vector<std::string>{"weights model.safetensors", "config config.json",
                                               "tokenizer tokenizer.json",
                                               "tokenizer tokenizer_config.json"}));
  const auto plan = plan_engine_folder(folder_.path());
  const Manifest facts = manifest_of(*plan);
  EXPECT_EQ(facts.format, "safetensors");
  EXPECT_EQ(facts.parameters, 6u);
  EXPECT_EQ(facts.training_context_tokens, 2048u);
  EXPECT_EQ(facts.shape.kv_heads_total, 4u);
  EXPECT_EQ(facts.shape.key_length, 16u);
  EXPECT_TRUE(facts.chat_template.tools);
  EXPECT_TRUE(facts.capabilities.chat);
}

TEST_F(EngineFolder, OfSeveralWeightFilesNeedsThemAll) {
  write_hugging_face();
  std::filesystem::remove(folder_ / "model.safetensors");
  write("model.safetensors.index.json",
        R"({"weight_map":{"a":"model-1.safetensors","b":"model-2.safetensors"}})");
  write("model-1.safetensors", safetensors("{}", 0));
  EXPECT_EQ(fault(), "/model-2.safetensors: This file is missing.");
  write("model-2.safetensors", safetensors("{}", 0));
  EXPECT_EQ(names().at(0), "weights model-1.safetensors");
  write("model.safetensors.index.json", R"({"weight_map":{"a":"../x.safetensors"}})");
  EXPECT_EQ(fault(), "/model.safetensors.index.json: It names no files (weight_map).");
}

TEST_F(EngineFolder, ForOnnxGenAiIsTakenWithItsData) {
  write_genai();
  EXPECT_EQ(names(),
            (std::vector<std::string>{"weights model.onnx", "weights model.onnx.data",
                                      "config genai_config.json", "tokenizer tokenizer.json"}));
  const auto plan = plan_engine_folder(folder_.path());
  const Manifest facts = manifest_of(*plan);
  EXPECT_EQ(facts.format, "onnx-genai");
  EXPECT_EQ(facts.shape.kv_heads_total, 90u);
}

TEST_F(EngineFolder, ThatIsNotWholeSaysWhatIsMissing) {
  write("model.safetensors", safetensors("{}", 0));
  EXPECT_EQ(fault(), "/config.json: This file is missing.");
  write("config.json", "{}");
  EXPECT_EQ(fault(),
            ": There is no tokenizer (none of tokenizer.json, tokenizer.model, vocab.json, "
            "vocab.txt, spiece.model).");
  std::filesystem::remove(folder_ / "model.safetensors");
  EXPECT_EQ(fault(), ": There are no weights (model.safetensors or model.safetensors.index.json).");
  write("pytorch_model.bin", "x");
  EXPECT_NE(fault().find("convert them to safetensors"), std::string::npos);
  write("genai_config.json", "{}");
  EXPECT_EQ(fault(), "/genai_config.json: It names no model file (model.decoder.filename).");
  write("genai_config.json", "[");
  EXPECT_EQ(fault(), "/genai_config.json: This is no JSON object.");
}

TEST_F(EngineFolder, IsNoneWhereGgufFilesKeepTheConfigurationOfTheirOrigin) {
  write("config.json", "{}");
  EXPECT_TRUE(is_engine_folder(folder_.path()));
  write("model-Q4_0.GGUF", "GGUF");
  EXPECT_FALSE(is_engine_folder(folder_.path()));
}

TEST_F(EngineFolder, WithACutWeightFileIsRefused) {
  write_hugging_face();
  write("model.safetensors",
        safetensors(R"({"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}})", 23));
  EXPECT_EQ(fault(), "/model.safetensors: This safetensors file is cut.");
  write("model.safetensors", "<html>");
  EXPECT_EQ(fault(), "/model.safetensors: This is no safetensors file.");
}

}  // namespace
}  // namespace werk::model
