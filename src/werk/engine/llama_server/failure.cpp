#include "werk/engine/llama_server/failure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>

#include "werk/base/text.hpp"

namespace werk::engine::llama_server {
namespace {

constexpr std::size_t kReasonBytesMax = 1200;
constexpr std::size_t kLastLinesMax = 6;

constexpr std::array<std::string_view, 2> kUnknownArchitecture{"unknown model architecture",
                                                               "unsupported model architecture"};
constexpr std::array<std::string_view, 9> kMemory{
    "out of memory",      "insufficient memory",    "failed to allocate",
    "unable to allocate", "cannot allocate",        "failed to mmap",
    "bad_alloc",          "ErrorOutOfDeviceMemory", "failed to alloc"};
constexpr std::array<std::string_view, 5> kModelFile{"error loading model", "failed to load model",
                                                     "gguf_init_from", "failed to open GGUF file",
                                                     "failed to load vocab"};
constexpr std::array<std::string_view, 2> kArguments{"error: invalid argument",
                                                     "error while handling argument"};

bool holds_any(std::string_view text, std::span<const std::string_view> words) {
  return std::any_of(words.begin(), words.end(), [text](std::string_view word) {
    return text.find(word) != std::string_view::npos;
  });
}

bool is_time_character(char c) { return (c >= '0' && c <= '9') || c == '.'; }

// "0.00.024.924 E what happened" -> 'E', "what happened". Lines in another form stay as they are,
// with level ' '.
std::pair<char, std::string_view> without_stamp(std::string_view line) {
  std::size_t at = 0;
  while (at < line.size() && is_time_character(line[at])) ++at;
  if (at == 0 || at + 3 > line.size() || line[at] != ' ' || line[at + 2] != ' ') return {' ', line};
  return {line[at + 1], trim(line.substr(at + 3))};
}

struct Lines {
  std::vector<std::string_view> errors;
  std::vector<std::string_view> all;
};

Lines lines_of(std::string_view output) {
  Lines lines;
  for_each_line(output, [&lines](std::string_view line) {
    const auto [level, text] = without_stamp(trim(line));
    if (text.empty()) return;
    lines.all.push_back(text);
    // A failed start prints some errors twice, once per attempt.
    const bool is_error = level == 'E' || text.starts_with("error");
    const bool is_new =
        std::find(lines.errors.begin(), lines.errors.end(), text) == lines.errors.end();
    if (is_error && is_new) lines.errors.push_back(text);
  });
  return lines;
}

Error failure(ErrorCode code, std::string message) {
  return Error{code, std::move(message), Origin::engine};
}

}  // namespace

std::string telling_lines(std::string_view output, std::size_t bytes_max) {
  const Lines lines = lines_of(output);
  // The first errors name the cause, those behind them repeat it on the way out.
  std::span<const std::string_view> chosen = lines.errors;
  if (chosen.empty()) {
    chosen = lines.all;
    if (chosen.size() > kLastLinesMax) chosen = chosen.last(kLastLinesMax);
  }
  std::string text = printable(fmt::format("{}", fmt::join(chosen, "; ")));
  std::replace(text.begin(), text.end(), '\n', ' ');
  if (text.size() > bytes_max) {
    text.resize(bytes_max);
    text = printable(text) + "...";
  }
  return text;
}

Error start_failure(std::string_view exit_text, std::string_view output,
                    const Executable& executable, std::optional<std::uint64_t> context_that_fits) {
  const std::string lines = telling_lines(output, kReasonBytesMax);
  const std::string said = lines.empty() ? "it printed nothing" : lines;
  const std::string head = fmt::format("llama-server {} ended during its start ({})",
                                       executable.version.text(), exit_text);
  const std::string advice =
      context_that_fits ? fmt::format("--ctx-size {} would fit at the moment", *context_that_fits)
                        : std::string("a smaller --ctx-size or --parallel needs less");
  if (holds_any(output, kUnknownArchitecture)) {
    return failure(
        ErrorCode::model_unusable,
        fmt::format("llama-server {} does not know this model's architecture: {}. A newer one may: "
                    "point WERK_LLAMA_SERVER to its executable",
                    executable.version.text(), said));
  }
  if (holds_any(output, kMemory)) {
    return failure(ErrorCode::start_failed,
                   fmt::format("{}: not enough memory; {}. It said: {}", head, advice, said));
  }
  if (holds_any(output, kArguments)) {
    return failure(
        ErrorCode::start_failed,
        fmt::format(
            "{}: it does not take its arguments (WERK_LLAMA_ARGS, or args of the settings file, is "
            "passed to it as it is). It said: {}",
            head, said));
  }
  if (holds_any(output, kModelFile)) {
    return failure(ErrorCode::model_unusable,
                   fmt::format("{}: it cannot use the model file: {}", head, said));
  }
  if (exit_text.find("SIGKILL") != std::string_view::npos) {
    return failure(
        ErrorCode::start_failed,
        fmt::format(
            "{}: killed from outside, most often because memory ran out; {}. The end of its "
            "output: {}",
            head, advice, said));
  }
  if (exit_text.find("SIGILL") != std::string_view::npos) {
    return failure(
        ErrorCode::start_failed,
        fmt::format("{}: it was built for another processor. `werk engine install llama-server` "
                    "builds one for this machine",
                    head));
  }
  return failure(ErrorCode::start_failed, fmt::format("{}: {}", head, said));
}

}  // namespace werk::engine::llama_server
