// Writes GGUF files (version 3, little-endian) for tests: key-values and tensors in the order they
// were added, float32 data aligned to 32 bytes. Everything stands in the caller's hands, so that
// wrong files can be written as easily as right ones. A builder is plain data; write() may be
// called again and gives the same bytes. Single thread.
#pragma once

#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace werk::test {

class GgufBuilder {
 public:
  // The value of element `index` of a tensor, row-major with the first dimension innermost.
  using Fill = std::function<float(std::uint64_t index)>;

  void add_string(std::string_view key, std::string_view value);
  void add_u8(std::string_view key, std::uint8_t value);
  void add_u16(std::string_view key, std::uint16_t value);
  void add_u32(std::string_view key, std::uint32_t value);
  void add_u64(std::string_view key, std::uint64_t value);
  void add_i32(std::string_view key, std::int32_t value);
  void add_f32(std::string_view key, float value);
  void add_truth(std::string_view key, std::uint8_t value);
  void add_strings(std::string_view key, const std::vector<std::string>& values);
  void add_u32s(std::string_view key, const std::vector<std::uint32_t>& values);
  void add_i32s(std::string_view key, const std::vector<std::int32_t>& values);

  // A float32 tensor. Its data follows the header at an aligned offset.
  void add_tensor(std::string_view name, std::vector<std::uint64_t> dimensions, Fill fill);
  // A tensor's entry as given, without data: for files that lie.
  void add_tensor_entry(std::string_view name, const std::vector<std::uint64_t>& dimensions,
                        std::uint32_t type, std::uint64_t offset);

  // Other counts or another version than the true ones, for files that lie.
  void set_version(std::uint32_t version) { version_ = version; }
  void set_tensor_count(std::uint64_t count) { tensor_count_ = count; }
  void set_key_value_count(std::uint64_t count) { key_value_count_ = count; }

  // The header with its padding: what stands before the tensor data.
  std::string header() const;
  void write(std::ostream& out) const;
  std::string bytes() const;

 private:
  struct Data {
    std::uint64_t elements;
    Fill fill;
  };

  void begin_value(std::string_view key, std::uint32_t type);

  std::uint32_t version_ = 3;
  std::uint64_t tensor_count_ = 0;
  std::uint64_t key_value_count_ = 0;
  std::string key_values_;
  std::string tensor_entries_;
  std::uint64_t data_bytes_ = 0;
  std::vector<Data> data_;
};

}  // namespace werk::test
