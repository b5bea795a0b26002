// A model of Hugging Face's form that nobody could run: for nodes whose vLLM is the fake. Written
// and imported by the real command. Stateless; blocking.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/support/node_process.hpp"

namespace werk::test {

// Weights of its own make an identity of its own; the table of tensors is empty.
inline void import_folder_model(const std::filesystem::path& folder, const std::string& name,
                                const std::filesystem::path& home) {
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "tokenizer.json") << "{}";
  std::ofstream(folder / "tokenizer_config.json")
      << R"({"chat_template":"{% for m in messages %}{{ m.role }}{{ tools }}{% endfor %}"})";
  std::ofstream(folder / "config.json")
      << R"({"model_type":"llama","max_position_embeddings":4096})";
  std::ofstream(folder / "model.safetensors")
      << std::string("\2\0\0\0\0\0\0\0{}", 10) << "weights of " << name;
  const CommandRun run =
      run_werk({"import", folder.string(), "--name", name}, {"WERK_HOME=" + home.string()});
  EXPECT_EQ(run.status, 0) << run.err;
}

}  // namespace werk::test
