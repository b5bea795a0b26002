#include "werk/model/gguf.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <optional>

#include "werk/base/text.hpp"
#include "werk/model/gguf_cursor.hpp"
#include "werk/model/gguf_types.hpp"

namespace werk::model {
namespace {

constexpr std::string_view kMagic = "GGUF";
constexpr std::size_t kKeyBytesMax = 256;
constexpr std::size_t kTextBytesMax = 256;
constexpr std::uint64_t kArrayElementsMax = 4096;  // of the few arrays that are read, one per layer
constexpr std::uint64_t kDimensionsMax = 4;
constexpr std::uint64_t kEntryBytesMin = 8 + 4 + 1;           // an empty key, a type, one byte
constexpr std::uint64_t kTensorBytesMin = 8 + 4 + 4 + 8;      // an empty name, no dimension
constexpr std::uint64_t kHeaderBytesMax = 512 * 1024 * 1024;  // real ones: at most tens of MB

enum ValueType : std::uint32_t {
  kU8, kI8, kU16, kI16, kU32, kI32, kF32, kBool, kString, kArray, kU64, kI64, kF64, kValueTypes
};
constexpr std::array<std::uint8_t, kValueTypes> kValueBytes = {1, 1, 2, 2, 4, 4, 4,
                                                               1, 0, 0, 8, 8, 8};
constexpr std::array<std::string_view, kValueTypes> kValueNames = {
    "uint8",  "int8",  "uint16", "int16",  "uint32", "int32",  "float32",
    "truth value", "text", "array", "uint64", "int64", "float64"};

constexpr std::array<std::string_view, 10> kWantedTexts = {
    "general.architecture", "general.name",     "general.size_label",
    "general.license",      "general.type",     "general.basename",
    "general.finetune",     "general.repo_url", "tokenizer.chat_template",
    "tokenizer.chat_template.tool_use"};

constexpr std::array<std::string_view, 8> kWantedNumbers = {
    "general.file_type",       "general.alignment",          "split.no",
    "split.count",             "clip.vision.projection_dim", "clip.audio.projection_dim",
    "clip.has_vision_encoder", "clip.has_audio_encoder"};

// After the architecture's name and a dot.
constexpr std::array<std::string_view, 9> kWantedOfArchitecture = {
    "context_length",          "block_count",          "embedding_length",
    "attention.head_count",    "attention.head_count_kv", "attention.key_length",
    "attention.value_length",  "pooling_type",         "vision.block_count"};

constexpr std::array<std::string_view, 11> kEncoders = {
    "bert",         "nomic-bert",  "nomic-bert-moe", "neo-bert",        "jina-bert-v2",
    "jina-bert-v3", "modern-bert", "eurobert",       "gemma-embedding", "llama-embed",
    "t5encoder"};
constexpr std::uint64_t kPoolingRank = 4;

template <class List>
bool contains(const List& list, std::string_view text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

bool is_wanted_number(std::string_view key) {
  if (contains(kWantedNumbers, key)) return true;
  const std::size_t dot = key.find('.');
  return dot != std::string_view::npos && contains(kWantedOfArchitecture, key.substr(dot + 1));
}

bool is_whole_number(std::uint32_t type) {
  return type == kU64 || type == kI64 || type == kBool || type <= kI32;
}

bool is_signed(std::uint32_t type) {
  return type == kI8 || type == kI16 || type == kI32 || type == kI64;
}

// One line that may stand in a manifest and on a terminal.
std::string one_line(std::string_view text) {
  std::string line = printable(text);
  std::replace_if(line.begin(), line.end(), [](char c) { return c == '\n' || c == '\t'; }, ' ');
  return std::string(trim(line));
}

// A whole number, or one per layer.
struct Number {
  std::uint64_t most = 0;
  std::uint64_t sum = 0;
  bool per_layer = false;
};

class HeaderReader {
 public:
  explicit HeaderReader(ByteSource& source) : source_(source), cursor_(source) {}

  Result<GgufInfo> read();

 private:
  void read_head();
  void read_entry();
  void refuse_huge_header();
  void read_array(const std::string& key);
  std::uint64_t read_whole(const std::string& key, std::uint32_t type);
  void keep_text(const std::string& key);
  void read_tensor();
  void count_tensor(std::uint32_t type_number, std::uint64_t row, std::uint64_t elements,
                    std::uint64_t offset);
  void check_data();
  void fill_info();
  void decide_purpose();
  std::uint64_t find(std::string_view key) const;
  const Number* of_architecture(std::string_view key) const;

  ByteSource& source_;
  GgufCursor cursor_;
  GgufInfo info_;
  std::string type_;  // general.type
  std::uint64_t entries_ = 0;
  std::map<std::string, Number, std::less<>> numbers_;
  std::array<std::uint64_t, kTensorTypesMax> elements_of_type_{};
  std::uint64_t data_end_bytes_ = 0;  // of the tensor that reaches furthest, from the data's begin
};

Result<GgufInfo> HeaderReader::read() {
  read_head();
  for (std::uint64_t i = 0; i < entries_ && !cursor_.failed(); ++i) read_entry();
  cursor_.enter("the list of tensors");
  for (std::uint64_t i = 0; i < info_.tensors && !cursor_.failed(); ++i) read_tensor();
  if (!cursor_.failed()) check_data();
  if (!cursor_.failed()) fill_info();
  if (cursor_.failed()) return fail(cursor_.take_error());
  return std::move(info_);
}

void HeaderReader::read_head() {
  std::array<char, 64> first{};
  const Result<std::size_t> count = source_.read_at(0, first);
  if (!count) return cursor_.refuse_with(count.error());
  const std::string_view bytes(first.data(), *count);
  if (!bytes.starts_with(kMagic)) {
    return cursor_.refuse(fmt::format("This is not a GGUF file but {}.",
                                      describe_foreign_file(bytes)));
  }
  cursor_.skip(kMagic.size());
  info_.version = cursor_.u32();
  info_.tensors = cursor_.u64();
  entries_ = cursor_.u64();
  if (cursor_.failed()) return;
  if (std::byteswap(info_.version) >= 1 && std::byteswap(info_.version) <= 0xFF) {
    return cursor_.refuse(
        "The file is written for big-endian machines; get the little-endian one.");
  }
  if (info_.version != 2 && info_.version != 3) {
    return cursor_.refuse(fmt::format(
        "The file has GGUF version {}; versions 2 and 3 can be read. {}", info_.version,
        info_.version == 1 ? "Convert the model anew." : "It may be damaged, or newer than Werk."));
  }
  if (entries_ > cursor_.bytes_left() / kEntryBytesMin ||
      info_.tensors > cursor_.bytes_left() / kTensorBytesMin) {
    cursor_.refuse(fmt::format("The file is cut or damaged: it announces {} entries and {} tensors "
                               "but has only {} bytes. Get it anew.",
                               entries_, info_.tensors, cursor_.size_bytes()));
  }
}

void HeaderReader::read_entry() {
  cursor_.enter("the key of an entry");
  const std::string key = cursor_.text(kKeyBytesMax);
  cursor_.enter(fmt::format("the entry '{}'", one_line(key)));
  const std::uint32_t type = cursor_.u32();
  if (cursor_.failed()) return;
  refuse_huge_header();
  if (type >= kValueTypes) {
    return cursor_.refuse(fmt::format(
        "The file is damaged: the entry '{}' has the unknown type {}.", one_line(key), type));
  }
  const bool text_wanted = contains(kWantedTexts, key);
  const bool number_wanted = is_wanted_number(key);
  const bool fits = text_wanted     ? type == kString
                    : number_wanted ? is_whole_number(type) || type == kArray
                                    : true;
  if (!fits) {
    return cursor_.refuse(fmt::format("The file is damaged: the entry '{}' is a {}, not a {}.",
                                      one_line(key), kValueNames[type],
                                      text_wanted ? "text" : "whole number"));
  }
  if (type == kArray) return read_array(key);
  if (text_wanted) return keep_text(key);
  if (type == kString) {
    cursor_.text(0);
  } else if (number_wanted) {
    const std::uint64_t value = read_whole(key, type);
    numbers_.try_emplace(key, Number{value, value, false});
  } else {
    cursor_.skip(kValueBytes[type]);
  }
}

void HeaderReader::refuse_huge_header() {
  if (cursor_.position() > kHeaderBytesMax) {
    cursor_.refuse("The file's header is over 512 MiB; no model's is. It may be damaged.");
  }
}

std::uint64_t HeaderReader::read_whole(const std::string& key, std::uint32_t type) {
  const std::uint64_t value = cursor_.number(kValueBytes[type]);
  const std::uint64_t sign = std::uint64_t{1} << (8U * kValueBytes[type] - 1U);
  if (is_signed(type) && (value & sign) != 0) {
    cursor_.refuse(fmt::format("The file is damaged: the entry '{}' is negative.", one_line(key)));
  }
  return value;
}

void HeaderReader::read_array(const std::string& key) {
  const std::uint32_t type = cursor_.u32();
  const std::uint64_t count = cursor_.u64();
  if (cursor_.failed()) return;
  if (type >= kValueTypes || type == kArray) {
    return cursor_.refuse(fmt::format("The file is damaged: the entry '{}' is an array of type {}.",
                                      one_line(key), type));
  }
  const std::uint64_t element_bytes = type == kString ? 8 : kValueBytes[type];
  if (count > cursor_.bytes_left() / element_bytes) {
    return cursor_.refuse(fmt::format("The file is cut or damaged: the entry '{}' announces {} "
                                      "elements, but only {} bytes are left. Get it anew.",
                                      one_line(key), count, cursor_.bytes_left()));
  }
  if (type == kString) {
    for (std::uint64_t i = 0; i < count && !cursor_.failed(); ++i) {
      cursor_.text(0);
      refuse_huge_header();
    }
  } else if (is_wanted_number(key) && is_whole_number(type) && count <= kArrayElementsMax) {
    Number number{0, 0, true};
    for (std::uint64_t i = 0; i < count && !cursor_.failed(); ++i) {
      const std::uint64_t value = read_whole(key, type);
      number.most = std::max(number.most, value);
      number.sum += std::min<std::uint64_t>(value, UINT32_MAX);
    }
    numbers_.try_emplace(key, number);
  } else {
    cursor_.skip(count * element_bytes);
  }
}

void HeaderReader::keep_text(const std::string& key) {
  const bool is_template = key.starts_with("tokenizer.");
  std::string text = cursor_.text(is_template ? kChatTemplateBytesMax : kTextBytesMax);
  if (key == "tokenizer.chat_template") {
    info_.chat_template = std::move(text);
  } else if (is_template) {
    info_.tool_template = std::move(text);
  } else if (key == "general.architecture") {
    info_.architecture = one_line(text);
  } else if (key == "general.name") {
    info_.name = one_line(text);
  } else if (key == "general.size_label") {
    info_.size_label = one_line(text);
  } else if (key == "general.license") {
    info_.licence = one_line(text);
  } else if (key == "general.basename") {
    info_.basename = one_line(text);
  } else if (key == "general.finetune") {
    info_.finetune = one_line(text);
  } else if (key == "general.repo_url") {
    info_.repository_url = one_line(text);
  } else {
    type_ = one_line(text);
  }
}

void HeaderReader::read_tensor() {
  cursor_.text(0);
  const std::uint32_t dimensions = cursor_.u32();
  if (dimensions > kDimensionsMax) {
    return cursor_.refuse(
        fmt::format("The file is damaged: a tensor has {} dimensions.", dimensions));
  }
  std::uint64_t elements = 1;
  std::uint64_t row = 1;
  bool too_large = false;
  for (std::uint32_t i = 0; i < dimensions; ++i) {
    const std::uint64_t length = cursor_.u64();
    if (i == 0) row = length;
    too_large = too_large || __builtin_mul_overflow(elements, length, &elements);
  }
  const std::uint32_t type = cursor_.u32();
  const std::uint64_t offset = cursor_.u64();
  if (cursor_.failed()) return;
  if (too_large || elements > INT64_MAX) {
    return cursor_.refuse("The file is damaged: a tensor has more elements than can be counted.");
  }
  if (type >= kTensorTypesMax) {
    return cursor_.refuse(fmt::format("The file is damaged: a tensor has the type {}.", type));
  }
  count_tensor(type, row, elements, offset);
}

void HeaderReader::count_tensor(std::uint32_t type_number, std::uint64_t row,
                                std::uint64_t elements, std::uint64_t offset) {
  // A type that is not known here belongs to a later engine: that its data begins in the file is
  // all that can be checked.
  const TensorType type = tensor_type(type_number).value_or(TensorType{"later", 1, 0});
  if (type.block_elements == 0) {
    return cursor_.refuse(fmt::format(
        "The file's tensors are stored as {}, which no engine reads any more. Get a newer file.",
        type.name));
  }
  if (row % type.block_elements != 0) {
    return cursor_.refuse(fmt::format("The file is damaged: a row of {} elements is stored as {}.",
                                      row, type.name));
  }
  std::uint64_t bytes = 0;
  std::uint64_t end = 0;
  const std::uint64_t blocks = elements / type.block_elements;
  if (__builtin_mul_overflow(blocks, std::uint64_t{type.block_bytes}, &bytes) ||
      __builtin_add_overflow(offset, bytes, &end) ||
      __builtin_add_overflow(info_.parameters, elements, &info_.parameters)) {
    return cursor_.refuse("The file is damaged: a tensor ends beyond any file.");
  }
  elements_of_type_[type_number] += elements;
  data_end_bytes_ = std::max(data_end_bytes_, end);
}

void HeaderReader::check_data() {
  constexpr std::uint64_t kUsualAlignment = 32;
  const auto found = numbers_.find("general.alignment");
  const std::uint64_t alignment = found == numbers_.end() ? kUsualAlignment : found->second.most;
  if (!std::has_single_bit(alignment) || alignment > UINT32_MAX) {
    return cursor_.refuse(
        fmt::format("The file is damaged: its data is aligned to {} bytes.", alignment));
  }
  if (info_.tensors == 0) return;
  const std::uint64_t begin = (cursor_.position() + alignment - 1) / alignment * alignment;
  if (begin > cursor_.size_bytes() || data_end_bytes_ > cursor_.size_bytes() - begin) {
    cursor_.refuse(fmt::format("The file is cut: it has {} bytes, but its tensors end {} bytes "
                               "after position {}. Get it anew.",
                               cursor_.size_bytes(), data_end_bytes_, begin));
  }
}

std::uint64_t HeaderReader::find(std::string_view key) const {
  const auto found = numbers_.find(key);
  return found == numbers_.end() ? 0 : found->second.most;
}

const Number* HeaderReader::of_architecture(std::string_view key) const {
  const auto found = numbers_.find(fmt::format("{}.{}", info_.architecture, key));
  return found == numbers_.end() ? nullptr : &found->second;
}

void HeaderReader::fill_info() {
  if (info_.architecture.empty()) {
    return cursor_.refuse("The file names no architecture (general.architecture).");
  }
  const auto most = [&](std::string_view key) {
    const Number* number = of_architecture(key);
    return number ? number->most : 0;
  };
  info_.training_context_tokens = most("context_length");
  info_.layers = most("block_count");
  info_.embedding_length = most("embedding_length");
  info_.heads = most("attention.head_count");
  const Number* kv_heads = of_architecture("attention.head_count_kv");
  if (!kv_heads) kv_heads = of_architecture("attention.head_count");
  if (kv_heads) {
    const std::uint64_t each = std::min<std::uint64_t>(kv_heads->most, UINT32_MAX);
    const std::uint64_t layers = std::min<std::uint64_t>(info_.layers, UINT32_MAX);
    info_.kv_heads_total = kv_heads->per_layer ? kv_heads->sum : each * layers;
  }
  const std::uint64_t usual = info_.heads == 0 ? 0 : info_.embedding_length / info_.heads;
  const auto length = [&](std::string_view key) {
    const std::uint64_t said = most(key);
    return said == 0 ? usual : said;
  };
  info_.key_length = length("attention.key_length");
  info_.value_length = length("attention.value_length");
  info_.encoder_inside = most("vision.block_count") != 0;
  info_.split_index = find("split.no");
  info_.split_count = find("split.count");
  info_.projection_length = find("clip.vision.projection_dim");
  if (info_.projection_length == 0) info_.projection_length = find("clip.audio.projection_dim");
  info_.reads_images = find("clip.has_vision_encoder") != 0;
  info_.reads_sound = find("clip.has_audio_encoder") != 0;
  if (numbers_.contains("general.file_type")) {
    info_.quantization = file_type_name(find("general.file_type"));
  } else if (info_.parameters > 0) {
    const auto largest = std::max_element(elements_of_type_.begin(), elements_of_type_.end());
    const auto number = static_cast<std::uint32_t>(largest - elements_of_type_.begin());
    const auto type = tensor_type(number);
    info_.quantization = type ? std::string(type->name) : fmt::format("unknown ({})", number);
  }
  decide_purpose();
}

void HeaderReader::decide_purpose() {
  const Number* pooling = of_architecture("pooling_type");
  if (type_ == "mmproj" || info_.architecture == "clip") {
    info_.purpose = GgufPurpose::projector;
  } else if (type_ == "adapter") {
    info_.purpose = GgufPurpose::adapter;
  } else if (info_.tensors == 0 && info_.split_count <= 1) {
    info_.purpose = GgufPurpose::vocabulary;
  } else if (pooling && pooling->most == kPoolingRank) {
    info_.purpose = GgufPurpose::reranking;
  } else if ((pooling && pooling->most != 0) || contains(kEncoders, info_.architecture)) {
    info_.purpose = GgufPurpose::embedding;
  }
}

}  // namespace

Result<GgufInfo> read_gguf(ByteSource& source) { return HeaderReader(source).read(); }

Result<GgufInfo> read_gguf_file(const std::filesystem::path& path) {
  auto source = FileSource::open(path);
  if (!source) return pass_on(source);
  Result<GgufInfo> info = read_gguf(**source);
  if (!info) {
    Error error = std::move(info.error());
    error.message = fmt::format("{}: {}", printable(path.filename().string()), error.message);
    return fail(std::move(error));
  }
  return info;
}

std::string describe_foreign_file(std::string_view first_bytes) {
  const std::string start = to_lower(first_bytes);
  if (first_bytes.empty()) return "an empty file";
  if (start.starts_with("version https://git-lfs")) {
    return "a Git LFS pointer, not the file it stands for (fetch it with: git lfs pull)";
  }
  if (start.starts_with("<!doctype") || start.starts_with("<html")) {
    return "a web page; the download went wrong";
  }
  if (first_bytes.starts_with("tjgg") || first_bytes.starts_with("lmgg") ||
      first_bytes.starts_with("fmgg")) {
    return "a model in a format older than GGUF; convert it anew";
  }
  if (first_bytes.starts_with("PK")) return "a ZIP or PyTorch file; convert it to GGUF";
  if (first_bytes.size() > 8 && first_bytes[8] == '{') {
    return "probably a safetensors file; convert it to GGUF";
  }
  if (std::all_of(first_bytes.begin(), first_bytes.end(), [](char c) { return c == '\0'; })) {
    return "a file of zeros; the download was not finished";
  }
  return "something else";
}

}  // namespace werk::model
