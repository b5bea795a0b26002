#include "tests/support/gguf_builder.hpp"

#include <cstring>
#include <sstream>

namespace werk::test {
namespace {

constexpr std::uint64_t kAlignment = 32;
constexpr std::uint32_t kU8 = 0, kU16 = 2, kU32 = 4, kI32 = 5, kF32 = 6, kTruth = 7, kString = 8;
constexpr std::uint32_t kArray = 9, kU64 = 10;
constexpr std::uint32_t kTensorF32 = 0;

std::uint64_t aligned(std::uint64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

template <class T>
void put(std::string& out, T value) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  out.append(bytes, sizeof(T));
}

void put_string(std::string& out, std::string_view text) {
  put<std::uint64_t>(out, text.size());
  out.append(text);
}

}  // namespace

void GgufBuilder::begin_value(std::string_view key, std::uint32_t type) {
  ++key_value_count_;
  put_string(key_values_, key);
  put(key_values_, type);
}

void GgufBuilder::add_string(std::string_view key, std::string_view value) {
  begin_value(key, kString);
  put_string(key_values_, value);
}

void GgufBuilder::add_u8(std::string_view key, std::uint8_t value) {
  begin_value(key, kU8);
  put(key_values_, value);
}

void GgufBuilder::add_u16(std::string_view key, std::uint16_t value) {
  begin_value(key, kU16);
  put(key_values_, value);
}

void GgufBuilder::add_u32(std::string_view key, std::uint32_t value) {
  begin_value(key, kU32);
  put(key_values_, value);
}

void GgufBuilder::add_u64(std::string_view key, std::uint64_t value) {
  begin_value(key, kU64);
  put(key_values_, value);
}

void GgufBuilder::add_i32(std::string_view key, std::int32_t value) {
  begin_value(key, kI32);
  put(key_values_, value);
}

void GgufBuilder::add_f32(std::string_view key, float value) {
  begin_value(key, kF32);
  put(key_values_, value);
}

void GgufBuilder::add_truth(std::string_view key, std::uint8_t value) {
  begin_value(key, kTruth);
  put(key_values_, value);
}

void GgufBuilder::add_strings(std::string_view key, const std::vector<std::string>& values) {
  begin_value(key, kArray);
  put(key_values_, kString);
  put<std::uint64_t>(key_values_, values.size());
  for (const std::string& value : values) put_string(key_values_, value);
}

void GgufBuilder::add_u32s(std::string_view key, const std::vector<std::uint32_t>& values) {
  begin_value(key, kArray);
  put(key_values_, kU32);
  put<std::uint64_t>(key_values_, values.size());
  for (const std::uint32_t value : values) put(key_values_, value);
}

void GgufBuilder::add_i32s(std::string_view key, const std::vector<std::int32_t>& values) {
  begin_value(key, kArray);
  put(key_values_, kI32);
  put<std::uint64_t>(key_values_, values.size());
  for (const std::int32_t value : values) put(key_values_, value);
}

void GgufBuilder::add_tensor_entry(std::string_view name,
                                   const std::vector<std::uint64_t>& dimensions, std::uint32_t type,
                                   std::uint64_t offset) {
  ++tensor_count_;
  put_string(tensor_entries_, name);
  put<std::uint32_t>(tensor_entries_, static_cast<std::uint32_t>(dimensions.size()));
  for (const std::uint64_t dimension : dimensions) put(tensor_entries_, dimension);
  put(tensor_entries_, type);
  put(tensor_entries_, offset);
}

void GgufBuilder::add_tensor(std::string_view name, std::vector<std::uint64_t> dimensions,
                             Fill fill) {
  add_tensor_entry(name, dimensions, kTensorF32, data_bytes_);
  std::uint64_t elements = 1;
  for (const std::uint64_t dimension : dimensions) elements *= dimension;
  data_.push_back({elements, std::move(fill)});
  data_bytes_ += aligned(elements * sizeof(float));
}

std::string GgufBuilder::header() const {
  std::string out = "GGUF";
  put(out, version_);
  put(out, tensor_count_);
  put(out, key_value_count_);
  out += key_values_;
  out += tensor_entries_;
  out.resize(aligned(out.size()), '\0');
  return out;
}

void GgufBuilder::write(std::ostream& out) const {
  constexpr std::uint64_t kElementsAtOnce = 64 * 1024;
  out << header();
  std::string block;
  for (const Data& data : data_) {
    for (std::uint64_t begin = 0; begin < data.elements; begin += kElementsAtOnce) {
      const std::uint64_t end = std::min(data.elements, begin + kElementsAtOnce);
      block.clear();
      for (std::uint64_t i = begin; i < end; ++i) put(block, data.fill(i));
      out << block;
    }
    const std::uint64_t bytes = data.elements * sizeof(float);
    out << std::string(aligned(bytes) - bytes, '\0');
  }
}

std::string GgufBuilder::bytes() const {
  std::ostringstream out;
  write(out);
  return std::move(out).str();
}

}  // namespace werk::test
