// Writes a hand-made model to a path: make_tiny_gguf PATH [--name TEXT] [--ctx N] [--template
// tools|plain|none] [--speech random|alphabet|endless] [--width N] [--layers N] [--heads N] [--ff
// N] [--seed N].
#include <charconv>
#include <cstring>
#include <iostream>
#include <string_view>

#include "tests/support/tiny_gguf.hpp"

namespace {

using werk::test::TinyGgufOptions;
using werk::test::TinySpeech;
using werk::test::TinyTemplate;

template <class Number>
bool set_number(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && number > 0;
}

bool set_option(std::string_view flag, std::string_view value, TinyGgufOptions& options) {
  if (flag == "--name") {
    options.name = value;
    return true;
  }
  if (flag == "--ctx") return set_number(value, options.context_tokens);
  if (flag == "--width") return set_number(value, options.width);
  if (flag == "--layers") return set_number(value, options.layers);
  if (flag == "--heads") return set_number(value, options.heads);
  if (flag == "--ff") return set_number(value, options.feed_forward);
  if (flag == "--seed") return set_number(value, options.seed);
  if (flag == "--template") {
    options.chat_template = value == "tools"   ? TinyTemplate::with_tools
                            : value == "plain" ? TinyTemplate::without_tools
                                               : TinyTemplate::none;
    return value == "tools" || value == "plain" || value == "none";
  }
  if (flag == "--speech") {
    options.speech = value == "alphabet"  ? TinySpeech::alphabet
                     : value == "endless" ? TinySpeech::endless
                                          : TinySpeech::random;
    return value == "alphabet" || value == "endless" || value == "random";
  }
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  TinyGgufOptions options;
  bool right = argc >= 2 && argc % 2 == 0;
  for (int i = 2; right && i + 1 < argc; i += 2) right = set_option(argv[i], argv[i + 1], options);
  right = right && options.width % (2 * options.heads) == 0;
  if (!right) {
    std::cerr << "usage: make_tiny_gguf PATH [--name TEXT] [--ctx N] [--template tools|plain|none]"
                 " [--speech random|alphabet|endless] [--width N] [--layers N] [--heads N]"
                 " [--ff N] [--seed N]\n";
    return 2;
  }
  if (!werk::test::write_tiny_gguf(argv[1], options)) {
    std::cerr << argv[1] << ": " << std::strerror(errno) << "\n";
    return 1;
  }
  return 0;
}
