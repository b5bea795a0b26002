#include "tests/api/exchange_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>

#include "werk/base/text.hpp"

namespace werk::test {
namespace {

constexpr std::string_view kTitle = "--- ";

tl::unexpected<Error> wrong(std::size_t line, std::string_view what) {
  return fail(ErrorCode::invalid_request, fmt::format("line {}: {}", line, what));
}

std::vector<std::string> words(std::string_view text, std::string_view separators) {
  std::vector<std::string> found;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of(separators), text.size());
    const std::string_view word = trim(text.substr(0, end));
    if (!word.empty()) found.emplace_back(word);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return found;
}

Status read_setting(NodeLines& node, std::string_view name, std::string_view value) {
  const auto number = [value] { return std::stoull(std::string(value)); };
  if (name == "default model") {
    node.default_model = std::string(value);
  } else if (name == "keys") {
    node.keys = words(value, ", ");
  } else if (name == "allow hosts") {
    node.allowed_hosts = words(value, ", ");
  } else if (name == "default") {
    const std::vector<std::string> parts = words(value, " ");
    if (parts.size() < 3)
      return fail(ErrorCode::invalid_request, "a default is MODEL MEMBER VALUE");
    const std::size_t json = value.find(parts[1] + " ") + parts[1].size() + 1;
    node.defaults[parts[0]].emplace_back(parts[1], trim(value.substr(json)));
  } else if (name == "alias") {
    node.alias_rules.emplace_back(value);
  } else if (name == "prompt edits") {
    node.prompt_edits = value == "on";
  } else if (name == "body limit") {
    node.body_bytes_max = number();
  } else if (name == "buffered bodies limit") {
    node.buffered_bytes_max = number();
  } else if (name == "engine silence") {
    node.engine_silence = std::chrono::seconds(number());
  } else if (name == "early headers") {
    node.early_headers = std::chrono::seconds(number());
  } else if (name == "idle timeout") {
    node.idle_timeout = std::chrono::seconds(number());
  } else if (name == "waiting limit") {
    node.waiting_max = number();
  } else if (name == "max resident") {
    node.resident_max = number();
  } else if (name == "slots") {
    node.slots = number();
  } else {
    return fail(ErrorCode::invalid_request, fmt::format("unknown setting '{}'", name));
  }
  return {};
}

Status read_settings(NodeLines& node, const Section& section) {
  std::size_t line = section.line;
  for (const std::string_view text : lines_of(section.text)) {
    ++line;
    if (trim(text).empty()) continue;
    const std::size_t colon = text.find(':');
    if (colon == std::string_view::npos) return wrong(line, "a setting is NAME: VALUE");
    const Status read =
        read_setting(node, trim(text.substr(0, colon)), trim(text.substr(colon + 1)));
    if (!read) return wrong(line, read.error().message);
  }
  return {};
}

Status read_model(ModelLine& model, std::string_view word) {
  const std::size_t equals = word.find('=');
  const std::string_view name = word.substr(0, equals);
  const std::string_view value =
      equals == std::string_view::npos ? std::string_view() : word.substr(equals + 1);
  if (name == "aliases") {
    model.aliases = words(value, ",");
  } else if (name == "tools") {
    model.tools = value == "yes";
  } else if (name == "images") {
    model.images = value == "yes";
  } else if (name == "counts") {
    model.counts = value == "yes";
  } else if (name == "reasoning") {
    model.keeps_reasoning = value == "kept";
  } else if (name == "system") {
    model.later_system = value != "first";
  } else if (name == "dialect") {
    model.plain = value == "plain";
  } else if (name == "owner") {
    model.external = value == "other";
  } else if (name == "messages") {
    model.native_messages = value == "native";
  } else if (name == "usage") {
    model.usage_asked = value != "unasked";
  } else if (name == "limit") {
    model.output_limit = value;
  } else if (name == "silence") {
    model.silence = std::chrono::seconds(std::stoull(std::string(value)));
  } else if (name == "start-takes") {
    model.start_time = std::chrono::seconds(std::stoull(std::string(value)));
  } else if (word == "start=fails") {
    model.start = StartRule::fails;
  } else if (word == "start=unusable") {
    model.start = StartRule::unusable;
  } else if (word == "start=rejected") {
    model.start = StartRule::rejected;
  } else {
    return fail(ErrorCode::invalid_request, fmt::format("unknown word '{}' of a model", word));
  }
  return {};
}

Status read_models(std::vector<ModelLine>& models, const Section& section) {
  std::size_t line = section.line;
  for (const std::string_view text : lines_of(section.text)) {
    ++line;
    if (trim(text).empty()) continue;
    // An id may hold spaces; the words after it are told by two spaces.
    const std::size_t gap = std::min(text.find("  "), text.size());
    ModelLine model;
    model.id = trim(text.substr(0, gap));
    for (const std::string& word : words(text.substr(gap), " ")) {
      const Status read = read_model(model, word);
      if (!read) return wrong(line, read.error().message);
    }
    models.push_back(std::move(model));
  }
  return {};
}

std::string expand_one(std::string_view inside) {
  if (inside.starts_with("byte ")) {
    unsigned byte = 0;
    std::from_chars(inside.data() + 5, inside.data() + inside.size(), byte, 16);
    return std::string(1, static_cast<char>(byte));
  }
  std::size_t count = 0;
  const char* end = inside.data() + inside.size();
  const auto read = std::from_chars(inside.data() + std::string_view("repeat ").size(), end, count);
  std::string out;
  for (std::size_t i = 0; i < count; ++i) out.append(read.ptr + 1, end);
  return out;
}

}  // namespace

std::string_view Section::after(std::string_view prefix) const {
  return trim(std::string_view(title).substr(prefix.size()));
}

std::string in_small_chunks(std::string_view body) {
  constexpr std::size_t kChunkBytes = 7;
  std::string out;
  for (; !body.empty(); body.remove_prefix(std::min(kChunkBytes, body.size()))) {
    const std::string_view piece = body.substr(0, kChunkBytes);
    out += fmt::format("{:x};extension=1\r\n{}\r\n", piece.size(), piece);
  }
  return out + "0\r\nX-Trailer: 1\r\n\r\n";
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::string expanded(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t byte = text.find("<byte ");
    const std::size_t repeat = text.find("<repeat ");
    const std::size_t at = std::min(byte, repeat);
    const std::size_t end = at == std::string_view::npos ? at : text.find('>', at);
    if (end == std::string_view::npos) break;
    out += text.substr(0, at);
    out += expand_one(text.substr(at + 1, end - at - 1));
    text.remove_prefix(end + 1);
  }
  out += text;
  return out;
}

Result<ExchangeFile> read_exchange(std::string_view text) {
  ExchangeFile file;
  std::vector<Section> sections;
  std::size_t number = 0;
  for (const std::string_view line : lines_of(text)) {
    ++number;
    if (line.starts_with(kTitle)) {
      Section section;
      section.title = trim(line.substr(kTitle.size()));
      section.line = number;
      sections.push_back(std::move(section));
    } else if (!sections.empty()) {
      sections.back().text += line;
      sections.back().text += '\n';
    } else if (line.starts_with('#')) {
      file.sentence += line.substr(1);
    } else if (!trim(line).empty()) {
      return wrong(number, "a file begins with '# what holds'");
    }
  }
  if (trim(file.sentence).empty()) return wrong(1, "the file says nowhere what holds");
  for (Section& section : sections) {
    // Blank lines before the next title, and the line feed of the last line, are no content.
    while (section.text.ends_with('\n')) section.text.pop_back();
    Status read;
    if (section.title == "settings") {
      read = read_settings(file.node, section);
    } else if (section.title == "models") {
      read = read_models(file.models, section);
    } else {
      file.steps.push_back(std::move(section));
    }
    if (!read) return pass_on(read);
  }
  if (file.models.empty()) file.models.push_back({.id = "small", .aliases = {}});
  return file;
}

std::string content_of(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::stringstream text;
  text << stream.rdbuf();
  return text.str();
}

std::vector<std::string> exchange_files(const std::filesystem::path& folder) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() == ".exchange")
      files.push_back(entry.path().lexically_relative(folder).string());
  }
  std::ranges::sort(files);
  return files;
}

}  // namespace werk::test
