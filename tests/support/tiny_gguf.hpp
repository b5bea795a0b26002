// A language model of half a megabyte, written by hand, that a real llama-server loads in
// milliseconds: architecture llama, two layers of width 64, byte-level vocabulary, ChatML template.
// The same options give the same bytes on every machine.
//
// What a test can make it say, seen with llama-server v0.5.0 (`-t 1 --jinja`):
// - TinySpeech::alphabet answers every chat with "abc...z" and finish reason `stop`, at any
//   temperature up to 1; TinySpeech::endless goes round the alphabet until `max_tokens`.
//   TinySpeech::random is noise, mostly not UTF-8. A grammar or json_schema forces exact text from
//   each of them.
// - A tool call, from a model that speaks: `tools` with one function whose arguments are an enum,
//   a const or an integer (in free strings the bias goes on) and `"logit_bias":{"259":80}`
//   (kTinyToolCall; a text as key would bias its letters). The answer is one call and finish reason
//   `tool_calls`, streamed or not, with `tool_choice` auto, required or a name; a bias of 300
//   repeats the call until `max_tokens`. Without a bias there is no call, `required` or not.
// Single thread; no state.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "tests/support/gguf_builder.hpp"

namespace werk::test {

enum class TinyTemplate : std::uint8_t { with_tools, without_tools, none };
enum class TinySpeech : std::uint8_t { random, alphabet, endless };

struct TinyGgufOptions {
  std::string name = "Werk Tiny";
  std::uint32_t context_tokens = 4096;
  TinyTemplate chat_template = TinyTemplate::with_tools;
  TinySpeech speech = TinySpeech::random;
  std::uint64_t seed = 1;
  // Larger values make loading and prefill slow enough to meet them: width 1024, layers 16 and
  // feed_forward 4096 are about 1.1 GB. `width` is a multiple of 2 * heads.
  std::uint32_t width = 64;
  std::uint32_t layers = 2;
  std::uint32_t heads = 4;
  std::uint32_t feed_forward = 128;
};

// Ids of the tokens that tests name, in the vocabulary that every tiny model shares. Token ids 0 to
// 255 are the bytes in the order of the byte-level alphabet ('!' is 0), so a printable ASCII
// character c has the id c - '!'.
inline constexpr int kTinyEndOfText = 256;      // <|endoftext|>
inline constexpr int kTinyStartOfTurn = 257;    // <|im_start|>
inline constexpr int kTinyEndOfTurn = 258;      // <|im_end|>, ends a generation
inline constexpr int kTinyToolCall = 259;       // <tool_call>
inline constexpr int kTinyToolCallEnd = 260;    // </tool_call>

GgufBuilder tiny_model(const TinyGgufOptions& options = {});

// The whole file as bytes.
std::string tiny_gguf(const TinyGgufOptions& options = {});
// Writes it; an existing file is replaced. False with errno set when the file cannot be written.
[[nodiscard]] bool write_tiny_gguf(const std::filesystem::path& path,
                                   const TinyGgufOptions& options = {});

// Something shaped like a vision projector for a model of `width`: read by Werk, loaded by no
// engine.
std::string tiny_projector(std::uint32_t width = 64);

}  // namespace werk::test
