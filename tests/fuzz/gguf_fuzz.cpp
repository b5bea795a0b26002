// Any bytes as a model file: the header's reader answers or refuses, its texts are fit for a
// manifest and a terminal, it never reads past what it was given, and the look at a chat template
// takes whatever it finds. Run with -malloc_limit_mb=64 to see that memory stays bounded.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "werk/base/assert.hpp"
#include "werk/base/text.hpp"
#include "werk/model/chat_template.hpp"
#include "werk/model/gguf.hpp"

namespace werk::model {
namespace {

// Says it is larger than it is, as a file does that is cut while it is read.
class BoastingSource final : public ByteSource {
 public:
  explicit BoastingSource(std::string_view text) : text_(text) {}
  std::uint64_t size_bytes() const override { return std::uint64_t{1} << 50U; }
  Result<std::size_t> read_at(std::uint64_t offset, std::span<char> out) override {
    return text_.read_at(offset, out);
  }

 private:
  TextSource text_;
};

void check_line(std::string_view text) {
  const auto is_control = [](unsigned char c) { return c < 0x20 || c == 0x7F; };
  WERK_ASSERT(is_valid_utf8(text));
  WERK_ASSERT(std::none_of(text.begin(), text.end(), is_control));
}

void check(ByteSource& source) {
  const Result<GgufInfo> info = read_gguf(source);
  if (!info) {
    WERK_ASSERT(info.error().code == ErrorCode::model_unusable);
    WERK_ASSERT(!info.error().message.empty());
    check_line(info.error().message);
    return;
  }
  for (const std::string* text : {&info->architecture, &info->name, &info->size_label,
                                  &info->licence, &info->quantization}) {
    check_line(*text);
  }
  WERK_ASSERT(!info->architecture.empty());
  WERK_ASSERT(info->chat_template.size() <= kChatTemplateBytesMax);
  look_at_chat_template(info->chat_template, info->tool_template);
}

void run(std::string_view input) {
  if (input.empty()) return;
  // The first byte decides whether the rest begins after a right magic and version.
  const bool with_head = (input.front() & 1) != 0;
  input.remove_prefix(1);
  const std::string head = with_head ? std::string("GGUF\x03\0\0\0", 8) : std::string();
  const std::string bytes = head + std::string(input);
  TextSource source(bytes);
  check(source);
  BoastingSource boasting(bytes);
  check(boasting);
  look_at_chat_template(input);
}

}  // namespace
}  // namespace werk::model

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  werk::model::run({reinterpret_cast<const char*>(data), size});
  return 0;
}
