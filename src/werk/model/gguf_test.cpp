#include "werk/model/gguf.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>
#include <fstream>
#include <random>

#include "tests/support/temporary_folder.hpp"
#include "tests/support/tiny_gguf.hpp"

namespace werk::model {
namespace {

using test::GgufBuilder;

Result<GgufInfo> read(std::string_view bytes) {
  TextSource source(bytes);
  return read_gguf(source);
}

// Why the bytes are refused; empty, and a failed test, when they are not.
std::string refusal(std::string_view bytes) {
  const auto info = read(bytes);
  if (info) {
    ADD_FAILURE() << "accepted";
    return {};
  }
  EXPECT_EQ(info.error().code, ErrorCode::model_unusable) << info.error().message;
  return info.error().message;
}

testing::AssertionResult says(const std::string& message, std::string_view part) {
  if (message.find(part) != std::string::npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "not in: " << message;
}

GgufBuilder minimal() {
  GgufBuilder file;
  file.add_string("general.architecture", "llama");
  return file;
}

constexpr std::uint64_t kHuge = std::uint64_t{1} << 63U;

float zero(std::uint64_t) { return 0.0F; }

template <class T>
std::string with_number_at(std::string bytes, std::size_t position, T value) {
  std::memcpy(bytes.data() + position, &value, sizeof(T));
  return bytes;
}

// A source that counts what is asked of it.
class CountingSource final : public ByteSource {
 public:
  CountingSource(std::string_view text, std::uint64_t size_bytes)
      : text_(text), size_bytes_(size_bytes) {}
  std::uint64_t size_bytes() const override { return size_bytes_; }
  Result<std::size_t> read_at(std::uint64_t offset, std::span<char> out) override {
    bytes_asked += out.size();
    return text_.read_at(offset, out);
  }
  std::uint64_t bytes_asked = 0;

 private:
  TextSource text_;
  std::uint64_t size_bytes_;
};

TEST(Gguf, TellsWhatATinyModelIs) {
  test::TinyGgufOptions options;
  options.name = "Tiny \xC3\x9C";
  const auto info = read(test::tiny_gguf(options));
  ASSERT_TRUE(info) << info.error().message;
  EXPECT_EQ(info->version, 3u);
  EXPECT_EQ(info->purpose, GgufPurpose::text);
  EXPECT_EQ(info->architecture, "llama");
  EXPECT_EQ(info->name, "Tiny \xC3\x9C");
  EXPECT_EQ(info->quantization, "F32");
  EXPECT_EQ(info->licence, "apache-2.0");
  EXPECT_EQ(info->training_context_tokens, 4096u);
  EXPECT_EQ(info->layers, 2u);
  EXPECT_EQ(info->embedding_length, 64u);
  EXPECT_EQ(info->heads, 4u);
  EXPECT_EQ(info->kv_heads_total, 8u);
  EXPECT_EQ(info->key_length, 16u);
  EXPECT_EQ(info->value_length, 16u);
  EXPECT_EQ(info->tensors, 2u * 9 + 3);
  EXPECT_EQ(info->parameters, 2u * 264 * 64 + 64 + 2 * (4 * 64 * 64 + 3 * 64 * 128 + 2 * 64));
  EXPECT_NE(info->chat_template.find("<tool_call>"), std::string::npos);
  EXPECT_EQ(info->split_count, 0u);
}

TEST(Gguf, RefusesAFileCutAtAnyByteOfItsHeader) {
  const std::string header = test::tiny_model().header();
  for (std::size_t length = 0; length <= header.size(); ++length) {
    const auto info = read(std::string_view(header).substr(0, length));
    ASSERT_FALSE(info) << "cut at " << length;
    ASSERT_EQ(info.error().code, ErrorCode::model_unusable) << "cut at " << length;
    ASSERT_FALSE(info.error().message.empty());
  }
}

TEST(Gguf, RefusesAFileCutAnywhereInItsData) {
  const std::string bytes = test::tiny_gguf();
  const std::size_t header = test::tiny_model().header().size();
  std::mt19937_64 random(20261129);
  for (int i = 0; i < 200; ++i) {
    const std::size_t length = header + random() % (bytes.size() - header);
    const auto info = read(std::string_view(bytes).substr(0, length));
    ASSERT_FALSE(info) << "cut at " << length;
  }
  const std::string_view but_one = std::string_view(bytes).substr(0, bytes.size() - 1);
  EXPECT_TRUE(says(refusal(but_one), "The file is cut"));
  EXPECT_TRUE(read(bytes + "what comes after the data does no harm"));
}

TEST(Gguf, SurvivesEveryOverwrittenByteOfAHeader) {
  GgufBuilder file = minimal();
  file.add_u32("llama.context_length", 4096);
  file.add_strings("tokenizer.ggml.tokens", {"a", "bc", ""});
  file.add_u32s("llama.attention.head_count_kv", {4, 2});
  file.add_tensor("t", {32, 2}, zero);
  const std::string bytes = file.bytes();
  std::size_t refused = 0;
  for (std::size_t i = 0; i < file.header().size(); ++i) {
    for (const int value : {0x00, 0x01, 0x7F, 0x80, 0xFF}) {
      std::string changed = bytes;
      changed[i] = static_cast<char>(value);
      if (!read(changed)) ++refused;
    }
  }
  EXPECT_GT(refused, 100u);
}

TEST(Gguf, RefusesImpossibleCountsWithoutReadingForThem) {
  for (const std::uint64_t count : {kHuge, ~std::uint64_t{0}, std::uint64_t{1000}}) {
    GgufBuilder file = minimal();
    file.set_tensor_count(count);
    EXPECT_TRUE(says(refusal(file.bytes()), "announces")) << count;
    file.set_tensor_count(0);
    file.set_key_value_count(count);
    EXPECT_TRUE(says(refusal(file.bytes()), "announces")) << count;
  }
  // The file claims to be large enough, so the counts look possible until its end is met.
  GgufBuilder file = minimal();
  file.set_key_value_count(1'000'000'000);
  const std::string bytes = file.bytes();
  CountingSource source(bytes, std::uint64_t{1} << 40U);
  EXPECT_FALSE(read_gguf(source));
  EXPECT_LT(source.bytes_asked, 1024u * 1024);
}

TEST(Gguf, NamesTheVersionsItDoesNotRead) {
  GgufBuilder file = minimal();
  file.set_version(1);
  EXPECT_TRUE(says(refusal(file.bytes()), "GGUF version 1"));
  file.set_version(4);
  EXPECT_TRUE(says(refusal(file.bytes()), "GGUF version 4"));
  file.set_version(0);
  EXPECT_TRUE(says(refusal(file.bytes()), "GGUF version 0"));
  file.set_version(0x03000000);
  EXPECT_TRUE(says(refusal(file.bytes()), "big-endian"));
  file.set_version(2);
  EXPECT_TRUE(read(file.bytes()));
}

TEST(Gguf, SaysWhatAForeignFileSeemsToBe) {
  EXPECT_TRUE(says(refusal(""), "an empty file"));
  EXPECT_TRUE(says(refusal("version https://git-lfs.github.com/spec/v1\n"), "Git LFS"));
  EXPECT_TRUE(says(refusal("<!DOCTYPE html>"), "web page"));
  EXPECT_TRUE(says(refusal(std::string("PK\x03\x04", 4)), "ZIP"));
  EXPECT_TRUE(says(refusal(std::string("\x40\0\0\0\0\0\0\0{\"a\"", 12)), "safetensors"));
  EXPECT_TRUE(says(refusal(std::string(100, '\0')), "zeros"));
  EXPECT_TRUE(says(refusal("hello"), "something else"));
}

TEST(Gguf, RefusesWrongTypesOfWhatItReads) {
  GgufBuilder number;
  number.add_u32("general.architecture", 7);
  EXPECT_TRUE(says(refusal(number.bytes()), "'general.architecture' is a uint32, not a text"));
  GgufBuilder text = minimal();
  text.add_string("llama.context_length", "many");
  EXPECT_TRUE(says(refusal(text.bytes()), "'llama.context_length' is a text"));
  GgufBuilder fraction = minimal();
  fraction.add_f32("llama.context_length", 0.5F);
  EXPECT_TRUE(says(refusal(fraction.bytes()), "float32"));
  GgufBuilder negative = minimal();
  negative.add_i32("llama.context_length", -1);
  EXPECT_TRUE(says(refusal(negative.bytes()), "negative"));
  EXPECT_TRUE(says(refusal(GgufBuilder().bytes()), "no architecture"));
}

TEST(Gguf, RefusesTextsAndArraysLongerThanTheFile) {
  const std::string bytes = minimal().bytes();
  constexpr std::size_t kKeyLength = 24;
  constexpr std::size_t kTextLength = kKeyLength + 8 + 20 + 4;
  for (const std::uint64_t length : {std::uint64_t{1000}, kHuge, ~std::uint64_t{0}}) {
    EXPECT_TRUE(says(refusal(with_number_at(bytes, kKeyLength, length)), "cut or damaged"));
    EXPECT_TRUE(says(refusal(with_number_at(bytes, kTextLength, length)), "cut or damaged"));
  }
  GgufBuilder file;
  file.add_u32s("x", {1});
  const std::string array = file.bytes();
  constexpr std::size_t kElementType = 24 + 8 + 1 + 4;
  EXPECT_TRUE(says(refusal(with_number_at(array, kElementType + 4, std::uint64_t{1} << 62U)),
                   "announces"));
  const auto with_type = [&](std::size_t position, std::uint32_t type) {
    return refusal(with_number_at(array, position, type));
  };
  EXPECT_TRUE(says(with_type(kElementType, 9), "array of type 9"));
  EXPECT_TRUE(says(with_type(kElementType, 77), "array of type 77"));
  EXPECT_TRUE(says(with_type(kElementType - 4, 13), "unknown type 13"));
}

TEST(Gguf, RefusesTensorsThatNoFileCanHold) {
  const auto with_tensor = [](std::vector<std::uint64_t> dimensions, std::uint32_t type,
                              std::uint64_t offset) {
    GgufBuilder file = minimal();
    file.add_tensor_entry("t", dimensions, type, offset);
    return file.bytes();
  };
  const std::uint64_t large = std::uint64_t{1} << 40U;
  EXPECT_TRUE(says(refusal(with_tensor({large, large}, 0, 0)), "more elements"));
  EXPECT_TRUE(says(refusal(with_tensor({kHuge}, 0, 0)), "more elements"));
  EXPECT_TRUE(says(refusal(with_tensor({large}, 0, ~std::uint64_t{0} - 8)), "beyond any file"));
  EXPECT_TRUE(says(refusal(with_tensor({32}, 0, 0)), "The file is cut"));
  EXPECT_TRUE(says(refusal(with_tensor({1, 1, 1, 1, 1}, 0, 0)), "5 dimensions"));
  EXPECT_TRUE(says(refusal(with_tensor({33}, 2, 0)), "a row of 33 elements is stored as Q4_0"));
  EXPECT_TRUE(says(refusal(with_tensor({32}, 4, 0)), "no engine reads any more"));
  EXPECT_TRUE(says(refusal(with_tensor({32}, 500, 0)), "type 500"));
  EXPECT_TRUE(says(refusal(with_tensor({32}, 100, 1)), "The file is cut"));
  EXPECT_TRUE(read(with_tensor({0}, 100, 0))) << "a later engine's type";
}

TEST(Gguf, RefusesAnImpossibleAlignment) {
  for (const std::uint32_t alignment : {0u, 3u, 48u}) {
    GgufBuilder file = minimal();
    file.add_u32("general.alignment", alignment);
    EXPECT_TRUE(says(refusal(file.bytes()), "aligned")) << alignment;
  }
}

TEST(Gguf, CountsHeadsLayerByLayerWhereTheyDiffer) {
  GgufBuilder file = minimal();
  file.add_u32("llama.block_count", 3);
  file.add_u32("llama.embedding_length", 64);
  file.add_u32s("llama.attention.head_count", {8, 8, 8});
  file.add_u32s("llama.attention.head_count_kv", {8, 0, 2});
  file.add_u32("llama.attention.key_length", 12);
  const auto info = read(file.bytes());
  ASSERT_TRUE(info);
  EXPECT_EQ(info->heads, 8u);
  EXPECT_EQ(info->kv_heads_total, 10u);
  EXPECT_EQ(info->key_length, 12u);
  EXPECT_EQ(info->value_length, 8u);
}

GgufPurpose purpose_of(const std::string& architecture, const std::string& type,
                       std::uint32_t pooling) {
  GgufBuilder file;
  file.add_string("general.architecture", architecture);
  if (!type.empty()) file.add_string("general.type", type);
  file.add_u32(architecture + ".pooling_type", pooling);
  file.add_tensor("t", {1}, zero);
  return read(file.bytes())->purpose;
}

TEST(Gguf, TellsWhatAFileIsFor) {
  EXPECT_EQ(purpose_of("llama", "model", 0), GgufPurpose::text);
  EXPECT_EQ(purpose_of("bert", "", 0), GgufPurpose::embedding);
  EXPECT_EQ(purpose_of("qwen3", "", 3), GgufPurpose::embedding);
  EXPECT_EQ(purpose_of("qwen3", "", 4), GgufPurpose::reranking);
  EXPECT_EQ(purpose_of("clip", "", 0), GgufPurpose::projector);
  EXPECT_EQ(purpose_of("llama", "adapter", 0), GgufPurpose::adapter);
  EXPECT_EQ(read(minimal().bytes())->purpose, GgufPurpose::vocabulary);
  const auto projector = read(test::tiny_projector(48));
  EXPECT_EQ(projector->purpose, GgufPurpose::projector);
  EXPECT_EQ(projector->projection_length, 48u);
  EXPECT_TRUE(projector->reads_images);
  EXPECT_FALSE(projector->reads_sound);
}

TEST(Gguf, NamesTheQuantizationOrElseTheTypeOfMostElements) {
  GgufBuilder file = minimal();
  file.add_u32("general.file_type", 15);
  EXPECT_EQ(read(file.bytes())->quantization, "Q4_K_M");
  GgufBuilder guessed = minimal();
  guessed.add_u32("general.file_type", 1024 + 7);
  EXPECT_EQ(read(guessed.bytes())->quantization, "Q8_0");
  GgufBuilder later = minimal();
  later.add_u32("general.file_type", 99);
  EXPECT_EQ(read(later.bytes())->quantization, "unknown (99)");
  GgufBuilder untold = minimal();
  untold.add_tensor("norm", {4}, zero);
  untold.add_tensor_entry("weights", {256}, 14, 0);
  EXPECT_EQ(read(untold.bytes() + std::string(256, 'x'))->quantization, "Q6_K");
}

TEST(Gguf, KeepsTextsShortAndFitForATerminal) {
  GgufBuilder file = minimal();
  file.add_string("general.name", "\x1B[31mred\n\xFF" + std::string(100'000, 'x'));
  file.add_string("tokenizer.chat_template", std::string(3 * 1024 * 1024, 't'));
  const auto info = read(file.bytes());
  ASSERT_TRUE(info);
  EXPECT_LT(info->name.size(), 300u);
  EXPECT_TRUE(info->name.starts_with("?[31mred \xEF\xBF\xBDx")) << info->name.substr(0, 20);
  EXPECT_EQ(info->chat_template.size(), kChatTemplateBytesMax);
}

TEST(GgufFile, RefusesWhatIsNotARegularFileWithoutWaiting) {
  test::TemporaryFolder folder;
  EXPECT_EQ(read_gguf_file(folder / "nothing").error().code, ErrorCode::not_found);
  EXPECT_TRUE(says(read_gguf_file(folder.path()).error().message, "a folder"));
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_TRUE(says(read_gguf_file(folder / "pipe").error().message, "not a regular file"));
}

TEST(GgufFile, ReadsAFileAsItReadsItsBytes) {
  test::TemporaryFolder folder;
  ASSERT_TRUE(test::write_tiny_gguf(folder / "tiny.gguf"));
  const auto info = read_gguf_file(folder / "tiny.gguf");
  ASSERT_TRUE(info) << info.error().message;
  EXPECT_EQ(info->parameters, read(test::tiny_gguf())->parameters);
  std::ofstream(folder / "cut.gguf") << test::tiny_model().header();
  const auto cut = read_gguf_file(folder / "cut.gguf");
  EXPECT_TRUE(says(cut.error().message, "cut.gguf: The file is cut"));
}

}  // namespace
}  // namespace werk::model
