// Reads the header of a GGUF file (versions 2 and 3, little-endian): what the model is, and whether
// the file is whole. It is bounded in memory and time whatever the bytes are: arrays are skipped,
// texts are cut at a limit, counts are compared with the bytes that are left before anything is
// read for them. Nobody trusts a header further: engines read it again. No state; any thread, and
// it blocks on the source. Source of the format: ggml's gguf.h and the key names of llama.cpp
// v0.5.0.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "werk/base/result.hpp"
#include "werk/model/byte_source.hpp"

namespace werk::model {

enum class GgufPurpose : std::uint8_t {
  text,       // generates text
  embedding,  // gives vectors
  reranking,  // gives scores
  projector,  // turns images or sound into a text model's tokens; no model by itself
  adapter,    // a LoRA; no model by itself
  vocabulary  // a tokenizer without weights
};

// Numbers are 0 and texts empty where the file says nothing. Texts are valid UTF-8 without control
// characters.
struct GgufInfo {
  std::uint32_t version = 0;
  GgufPurpose purpose = GgufPurpose::text;
  std::string architecture;    // "llama", "qwen3", "clip"
  std::string name;            // general.name
  std::string basename;        // general.basename: "Qwen3"
  std::string finetune;        // general.finetune: "Instruct"
  std::string size_label;      // "135M"
  std::string repository_url;  // general.repo_url
  std::string licence;         // general.license
  std::string quantization;    // "Q4_K_M": general.file_type, else the type most elements have
  std::uint64_t tensors = 0;
  std::uint64_t parameters = 0;  // elements of all tensors of this file
  std::uint64_t training_context_tokens = 0;

  // Shape, for estimates of the memory that a context takes.
  std::uint64_t layers = 0;
  std::uint64_t embedding_length = 0;
  std::uint64_t heads = 0;           // of the layer that has most
  std::uint64_t kv_heads_total = 0;  // key-value heads of all layers together
  std::uint64_t key_length = 0;      // of one head
  std::uint64_t value_length = 0;

  // The template text, at most kChatTemplateBytesMax of it, byte for byte as in the file; tools may
  // have one of their own.
  std::string chat_template;
  std::string tool_template;

  // A file of a split set: which one (from 0), of how many. 0 of 0 when it is not split.
  std::uint64_t split_index = 0;
  std::uint64_t split_count = 0;

  // The model's image encoder is in the same file, as Ollama's own converter writes it; llama.cpp
  // wants it in a projector and refuses such a file (ggml-org/llama.cpp#27349).
  bool encoder_inside = false;

  // Of a projector: the embedding length of the models it suits, and what it reads.
  std::uint64_t projection_length = 0;
  bool reads_images = false;
  bool reads_sound = false;
};

inline constexpr std::size_t kChatTemplateBytesMax = 1024 * 1024;

// Fails with `model_unusable` and a sentence that says what is wrong with the file ("The file is
// cut: ..."), without its path; with `io` when the source cannot be read.
Result<GgufInfo> read_gguf(ByteSource& source);

// The same for a file; also fails as FileSource::open does. Messages begin with the file's own name
// (not its folder).
Result<GgufInfo> read_gguf_file(const std::filesystem::path& path);

// What a file that does not begin as GGUF does seems to be instead: "a Git LFS pointer, not the
// file it stands for".
std::string describe_foreign_file(std::string_view first_bytes);

}  // namespace werk::model
