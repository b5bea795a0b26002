#include "tests/support/tiny_gguf.hpp"

#include <array>
#include <cmath>
#include <fstream>
#include <vector>

namespace werk::test {
namespace {

constexpr std::int32_t kNormalToken = 1, kControlToken = 3, kUserDefinedToken = 4;

constexpr std::string_view kTemplateHead = R"({%- if tools %}
    {{- '<|im_start|>system\n' }}
    {%- if messages[0].role == 'system' %}
        {{- messages[0].content + '\n\n' }}
    {%- endif %}
    {{- '# Tools\n\nFunctions you may call, one JSON object a line:\n<tools>' }}
    {%- for tool in tools %}
        {{- '\n' + (tool | tojson) }}
    {%- endfor %}
    {{- '\n</tools>\n\nA call is a JSON object within tags:\n<tool_call>' }}
    {{- '{"name": <function-name>, "arguments": <args-json-object>}</tool_call>' }}
    {{- '<|im_end|>\n' }}
{%- elif messages[0].role == 'system' %}
    {{- '<|im_start|>system\n' + messages[0].content + '<|im_end|>\n' }}
{%- endif %}
{%- for message in messages %}
    {%- if message.role == 'system' %}
        {%- if not loop.first %}
            {{- '<|im_start|>system\n' + message.content + '<|im_end|>\n' }}
        {%- endif %}
    {%- elif message.role == 'assistant' and message.tool_calls %}
        {{- '<|im_start|>assistant' }}
        {%- if message.content %}
            {{- '\n' + message.content }}
        {%- endif %}
        {%- for call in message.tool_calls %}
            {%- if call.function is defined %}
                {%- set call = call.function %}
            {%- endif %}
            {{- '\n<tool_call>{"name": "' + call.name + '", "arguments": ' }}
            {{- call.arguments | tojson }}
            {{- '}</tool_call>' }}
        {%- endfor %}
        {{- '<|im_end|>\n' }}
    {%- elif message.role == 'tool' %}
        {{- '<|im_start|>user\n<tool_response>\n' + message.content }}
        {{- '\n</tool_response><|im_end|>\n' }}
    {%- else %}
        {{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\n' }}
{%- endif %})";

constexpr std::string_view kPlainTemplate =
    R"({%- for message in messages %}
    {{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\n' }}
{%- endif %})";

// A number that depends on the seed and the place alone (SplitMix64's mixing function).
std::uint64_t mixed(std::uint64_t seed, std::uint64_t index) {
  std::uint64_t z = seed * 0x9E3779B97F4A7C15U + index * 0xD1B54A32D192ED03U;
  z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
  return z ^ (z >> 31U);
}

// Uniform in [-1, 1).
float noise(std::uint64_t seed, std::uint64_t index) {
  return static_cast<float>(mixed(seed, index) >> 40U) / static_cast<float>(1U << 23U) - 1.0F;
}

std::string utf8(std::uint32_t code_point) {
  if (code_point < 0x80) return std::string(1, static_cast<char>(code_point));
  return {static_cast<char>(0xC0U | (code_point >> 6U)),
          static_cast<char>(0x80U | (code_point & 0x3FU))};
}

// Byte-level BPE writes each byte as one visible character: the printable ones of Latin-1 as
// themselves, first, the others as U+0100 and on, after them (the alphabet of GPT-2's tokenizer).
bool shows_as_itself(std::uint32_t byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

std::array<std::uint32_t, 256> byte_of_token() {
  std::array<std::uint32_t, 256> bytes{};
  std::size_t next = 0;
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    if (shows_as_itself(byte)) bytes[next++] = byte;
  }
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    if (!shows_as_itself(byte)) bytes[next++] = byte;
  }
  return bytes;
}

struct Vocabulary {
  std::vector<std::string> tokens;
  std::vector<std::int32_t> types;
  std::array<std::uint32_t, 256> token_of_byte{};
};

Vocabulary make_vocabulary() {
  Vocabulary vocabulary;
  const auto bytes = byte_of_token();
  std::uint32_t hidden = 0x100;
  for (std::uint32_t token = 0; token < 256; ++token) {
    const std::uint32_t byte = bytes[token];
    vocabulary.token_of_byte[byte] = token;
    vocabulary.tokens.push_back(utf8(shows_as_itself(byte) ? byte : hidden++));
    vocabulary.types.push_back(kNormalToken);
  }
  const auto add = [&](std::string text, std::int32_t type) {
    vocabulary.tokens.push_back(std::move(text));
    vocabulary.types.push_back(type);
  };
  add("<|endoftext|>", kControlToken);
  add("<|im_start|>", kControlToken);
  add("<|im_end|>", kControlToken);
  add("<tool_call>", kUserDefinedToken);
  add("</tool_call>", kUserDefinedToken);
  add("<think>", kUserDefinedToken);
  add("</think>", kUserDefinedToken);
  add("he", kNormalToken);
  return vocabulary;
}

void add_key_values(GgufBuilder& file, const TinyGgufOptions& options,
                    const Vocabulary& vocabulary) {
  file.add_string("general.architecture", "llama");
  file.add_string("general.type", "model");
  file.add_string("general.name", options.name);
  file.add_string("general.license", "apache-2.0");
  file.add_u32("general.file_type", 0);
  file.add_u32("llama.context_length", options.context_tokens);
  file.add_u32("llama.embedding_length", options.width);
  file.add_u32("llama.block_count", options.layers);
  file.add_u32("llama.feed_forward_length", options.feed_forward);
  file.add_u32("llama.attention.head_count", options.heads);
  file.add_u32("llama.attention.head_count_kv", options.heads);
  file.add_u32("llama.rope.dimension_count", options.width / options.heads);
  file.add_f32("llama.rope.freq_base", 10000.0F);
  file.add_f32("llama.attention.layer_norm_rms_epsilon", 1e-5F);
  file.add_u32("llama.vocab_size", static_cast<std::uint32_t>(vocabulary.tokens.size()));
  file.add_string("tokenizer.ggml.model", "gpt2");
  file.add_string("tokenizer.ggml.pre", "gpt-2");
  file.add_strings("tokenizer.ggml.tokens", vocabulary.tokens);
  file.add_i32s("tokenizer.ggml.token_type", vocabulary.types);
  file.add_strings("tokenizer.ggml.merges", {"h e"});
  file.add_u32("tokenizer.ggml.bos_token_id", kTinyEndOfText);
  file.add_u32("tokenizer.ggml.eos_token_id", kTinyEndOfTurn);
  file.add_u32("tokenizer.ggml.padding_token_id", kTinyEndOfText);
  file.add_truth("tokenizer.ggml.add_bos_token", 0);
  if (options.chat_template == TinyTemplate::with_tools) {
    file.add_string("tokenizer.chat_template", kTemplateHead);
  } else if (options.chat_template == TinyTemplate::without_tools) {
    file.add_string("tokenizer.chat_template", kPlainTemplate);
  }
}

struct Predecessor {
  std::uint32_t token;
  float weight = 1.0F;
};

// Which token follows which when the model speaks; where nothing is said, noise decides. A tool
// call is followed by the end of the turn, so firmly that a logit_bias which opens calls does not
// open a second one.
std::vector<std::vector<Predecessor>> predecessors(TinySpeech speech,
                                                   const Vocabulary& vocabulary) {
  std::vector<std::vector<Predecessor>> before(vocabulary.tokens.size());
  if (speech == TinySpeech::random) return before;
  const auto token = [&](char c) {
    return vocabulary.token_of_byte[static_cast<unsigned char>(c)];
  };
  before[token('a')] = {{token('\n')}, {token(' ')}};
  for (char c = 'b'; c <= 'z'; ++c) before[token(c)] = {{token(static_cast<char>(c - 1))}};
  before[kTinyToolCallEnd] = {{token('}'), 2.0F}};
  before[kTinyEndOfTurn] = {{kTinyToolCallEnd, 2.0F}};
  before[speech == TinySpeech::endless ? token('a') : kTinyEndOfTurn].push_back({token('z')});
  return before;
}

}  // namespace

GgufBuilder tiny_model(const TinyGgufOptions& options) {
  GgufBuilder file;
  const Vocabulary vocabulary = make_vocabulary();
  add_key_values(file, options, vocabulary);

  std::uint64_t stream = options.seed << 20U;
  const std::uint64_t width = options.width;
  const std::uint64_t inner = options.feed_forward;
  const auto matrix = [&](const std::string& name, std::uint64_t in, std::uint64_t out,
                          float most) {
    const std::uint64_t seed = ++stream;
    file.add_tensor(name, {in, out},
                    [seed, most](std::uint64_t i) { return most * noise(seed, i); });
  };
  const auto ones = [&](const std::string& name) {
    file.add_tensor(name, {width}, [](std::uint64_t) { return 1.0F; });
  };

  // Each token is a corner of a cube, so that two tokens are nearly orthogonal. A speaking model's
  // layers add nothing to it, and the output row of a token is the sum of the corners of those it
  // follows: the right one stands out by ~width.
  const std::uint64_t corner_seed = ++stream;
  const auto corner = [corner_seed](std::uint64_t i) {
    return (mixed(corner_seed, i) >> 63U) != 0 ? 1.0F : -1.0F;
  };
  const bool speaks = options.speech != TinySpeech::random;
  const float size = 1.0F / std::sqrt(static_cast<float>(width));
  const float returned = speaks ? 0.0F : size;
  file.add_tensor("token_embd.weight", {width, vocabulary.tokens.size()}, corner);
  for (std::uint32_t layer = 0; layer < options.layers; ++layer) {
    const std::string block = "blk." + std::to_string(layer) + ".";
    ones(block + "attn_norm.weight");
    matrix(block + "attn_q.weight", width, width, size);
    matrix(block + "attn_k.weight", width, width, size);
    matrix(block + "attn_v.weight", width, width, size);
    matrix(block + "attn_output.weight", width, width, returned);
    ones(block + "ffn_norm.weight");
    matrix(block + "ffn_gate.weight", width, inner, size);
    matrix(block + "ffn_up.weight", width, inner, size);
    matrix(block + "ffn_down.weight", inner, width, returned);
  }
  ones("output_norm.weight");
  if (!speaks) {
    matrix("output.weight", width, vocabulary.tokens.size(), size);
    return file;
  }
  file.add_tensor(
      "output.weight", {width, vocabulary.tokens.size()},
      [before = predecessors(options.speech, vocabulary), width, corner](std::uint64_t i) {
        float sum = 0.0F;
        for (const auto& [token, weight] : before[i / width]) {
          sum += weight * corner(token * width + i % width);
        }
        return sum;
      });
  return file;
}

std::string tiny_gguf(const TinyGgufOptions& options) { return tiny_model(options).bytes(); }

bool write_tiny_gguf(const std::filesystem::path& path, const TinyGgufOptions& options) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  if (!out) return false;
  tiny_model(options).write(out);
  out.flush();
  return static_cast<bool>(out);
}

std::string tiny_projector(std::uint32_t width) {
  GgufBuilder file;
  file.add_string("general.architecture", "clip");
  file.add_string("general.type", "mmproj");
  file.add_u32("general.file_type", 0);
  file.add_truth("clip.has_vision_encoder", 1);
  file.add_string("clip.projector_type", "mlp");
  file.add_u32("clip.vision.projection_dim", width);
  file.add_tensor("mm.0.weight", {width, width}, [](std::uint64_t i) { return noise(7, i); });
  return file.bytes();
}

}  // namespace werk::test
