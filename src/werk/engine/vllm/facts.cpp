#include "werk/engine/vllm/facts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <vector>

#include "werk/base/text.hpp"

namespace werk::engine::vllm {
namespace {

namespace json = boost::json;

constexpr std::size_t kNamesShownMax = 3;
constexpr std::size_t kReasonBytesMax = 600;

// "(EngineCore pid=7) ERROR 11-30 14:39:34 [core.py:90] ValueError: ..." without what stands before
// the text.
std::string_view without_head(std::string_view line) {
  if (line.starts_with('(')) {
    const std::size_t close = line.find(") ");
    if (close != std::string_view::npos) line.remove_prefix(close + 2);
  }
  const std::size_t place = line.find("] ");
  const bool is_logged =
      line.starts_with("ERROR ") || line.starts_with("INFO ") || line.starts_with("WARNING ");
  if (is_logged && place != std::string_view::npos) line.remove_prefix(place + 2);
  return trim(line);
}

// "ValueError: ...", "vllm.v1.engine.exceptions.EngineDeadError: ..."
bool names_an_error(std::string_view text) {
  const std::size_t colon = text.find(": ");
  if (colon == std::string_view::npos) return text.ends_with("Error");
  const std::string_view head = text.substr(0, colon);
  if (head.find(' ') != std::string_view::npos) return false;
  return head.ends_with("Error") || head.ends_with("Exception") || head == "error";
}

std::vector<std::string_view> lines_of(std::string_view output) {
  std::vector<std::string_view> lines;
  for_each_line(output, [&lines](std::string_view whole) {
    const std::string_view line = without_head(whole);
    if (!line.empty()) lines.push_back(line);
  });
  return lines;
}

}  // namespace

Result<ServedModel> check_serves(std::string_view models_body, std::string_view name) {
  boost::system::error_code error;
  const json::value body = json::parse(models_body, error);
  const json::object* object = error ? nullptr : body.if_object();
  const json::value* data = object == nullptr ? nullptr : object->if_contains("data");
  if (data == nullptr || !data->is_array()) {
    return fail(ErrorCode::start_failed, Origin::engine,
                "vLLM answered /v1/models with something else than a list of models");
  }
  std::vector<std::string> names;
  for (const json::value& entry : data->get_array()) {
    const json::object* one = entry.if_object();
    const json::value* id = one == nullptr ? nullptr : one->if_contains("id");
    if (id == nullptr || !id->is_string()) continue;
    if (id->get_string() != name) {
      // A name may be a path of this machine, so only its last part is told.
      const std::string_view text = id->get_string();
      names.push_back(printable(text.substr(text.rfind('/') + 1)));
      continue;
    }
    ServedModel served;
    const json::value* length = one->if_contains("max_model_len");
    if (length != nullptr && length->is_int64() && length->get_int64() > 0)
      served.context_tokens = static_cast<std::uint64_t>(length->get_int64());
    return served;
  }
  if (names.size() > kNamesShownMax) names.resize(kNamesShownMax);
  return fail(
      ErrorCode::start_failed, Origin::engine,
      fmt::format("vLLM came up but serves another model than the one asked for ({})",
                  names.empty() ? "none at all" : fmt::format("{}", fmt::join(names, ", "))));
}

std::string version_in(std::string_view version_body) {
  boost::system::error_code error;
  const json::value body = json::parse(version_body, error);
  const json::object* object = error ? nullptr : body.if_object();
  const json::value* version = object == nullptr ? nullptr : object->if_contains("version");
  if (version == nullptr || !version->is_string()) return {};
  return printable(version->get_string());
}

std::string telling_lines(std::string_view output, std::size_t bytes_max) {
  std::vector<std::string_view> telling = lines_of(output);
  std::vector<std::string_view> errors;
  for (const std::string_view line : telling) {
    if (names_an_error(line) && std::ranges::find(errors, line) == errors.end())
      errors.push_back(line);
  }
  if (!errors.empty()) telling = std::move(errors);
  constexpr std::size_t kLinesMax = 4;
  std::string text;
  std::size_t taken = 0;
  for (auto line = telling.rbegin(); line != telling.rend() && taken < kLinesMax; ++line, ++taken) {
    std::string shown = printable(*line);
    if (text.size() + shown.size() + 3 > bytes_max) break;
    text = text.empty() ? std::move(shown) : fmt::format("{} | {}", shown, text);
  }
  return text;
}

Error start_failure(std::string_view exit_text, std::string_view output) {
  constexpr std::array<std::string_view, 5> kForGood{
      "does not recognize this architecture", "are not supported for now",
      "No model architectures are specified", "SafetensorError", "has no vLLM implementation"};
  const bool for_good = std::ranges::any_of(kForGood, [&](std::string_view words) {
    return output.find(words) != std::string_view::npos;
  });
  const std::string lines = telling_lines(output, kReasonBytesMax);
  Error error{for_good ? ErrorCode::model_unusable : ErrorCode::start_failed,
              lines.empty() ? fmt::format("vLLM ended during its start ({})", exit_text)
                            : fmt::format("vLLM ended during its start ({}): {}", exit_text, lines),
              Origin::engine};
  return error;
}

}  // namespace werk::engine::vllm
