#include "werk/engine/llama_server/probe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "werk/base/text.hpp"

namespace werk::engine::llama_server {
namespace {

constexpr std::array kAccelerators{Mode::cuda, Mode::rocm, Mode::metal, Mode::vulkan};

std::uint64_t number_in(std::string_view text) {
  std::uint64_t value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  return read.ec == std::errc() ? value : 0;
}

bool is_whole_number(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// The word that follows `before` in `text`, up to a blank, a comma or a bracket.
std::string_view word_after(std::string_view text, std::string_view before) {
  const std::size_t at = text.find(before);
  if (at == std::string_view::npos) return {};
  text.remove_prefix(at + before.size());
  return text.substr(0, std::min(text.find_first_of(" ,()"), text.size()));
}

// The option spellings at the head of one help entry: words that begin with '-', each but the last
// followed by a comma. What comes after them (value names, the description) may begin with '-' too
// and doesn't count.
std::vector<std::string> spellings_in(std::string_view line) {
  std::vector<std::string> spellings;
  while (!line.empty()) {
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    std::string_view word = line.substr(0, std::min(line.find(' '), line.size()));
    line.remove_prefix(word.size());
    const bool more = word.ends_with(',');
    if (more) word.remove_suffix(1);
    if (!word.starts_with('-') || word.size() < 2) break;
    spellings.emplace_back(word);
    if (!more) break;
  }
  return spellings;
}

}  // namespace

std::string Version::text() const {
  if (!semantic.empty()) return semantic;
  if (build != 0) return fmt::format("build {}", build);
  return "of unknown version";
}

std::optional<Version> parse_version(std::string_view output) {
  std::optional<Version> found;
  for_each_line(output, [&found](std::string_view line) {
    constexpr std::string_view kHead = "version: ";
    if (found || !line.starts_with(kHead)) return;
    line.remove_prefix(kHead.size());
    Version version;
    const std::string_view first = line.substr(0, std::min(line.find(' '), line.size()));
    if (is_whole_number(first)) {
      version.build = number_in(first);
      version.commit = word_after(line, "(");
    } else {
      version.semantic = printable(first.starts_with('v') ? first.substr(1) : first);
      version.build = number_in(word_after(line, "build "));
      version.commit = word_after(line, "commit ");
    }
    found = std::move(version);
  });
  return found;
}

std::set<std::string, std::less<>> parse_help_flags(std::string_view output) {
  std::set<std::string, std::less<>> flags;
  std::vector<std::string> entry;  // of the entry whose description is being read
  bool removed = false;
  const auto close_entry = [&] {
    if (!removed) flags.insert(entry.begin(), entry.end());
    entry.clear();
    removed = false;
  };
  for_each_line(output, [&](std::string_view line) {
    if (line.starts_with('-') && !line.starts_with("----")) {
      close_entry();
      entry = spellings_in(line);
    }
    removed = removed || line.find("argument has been removed") != std::string_view::npos;
  });
  close_entry();
  return flags;
}

std::vector<Device> parse_devices(std::string_view output) {
  std::vector<Device> devices;
  bool listing = false;
  for_each_line(output, [&](std::string_view line) {
    if (line.starts_with("Available devices")) {
      listing = true;
      return;
    }
    if (!listing || !line.starts_with(' ')) return;
    line = trim(line);
    const std::size_t colon = line.find(": ");
    if (line.starts_with('(') || colon == std::string_view::npos) return;
    std::string_view description = line.substr(colon + 2);
    // What follows in brackets at the end is memory, which changes from one look to the next.
    if (description.ends_with(" free)"))
      description = description.substr(0, description.rfind(" ("));
    devices.push_back(Device{printable(line.substr(0, colon)), printable(description)});
  });
  return devices;
}

std::optional<Mode> mode_of_device(std::string_view device_name) {
  const std::string name = to_lower(device_name);
  if (name.starts_with("cuda")) return Mode::cuda;
  if (name.starts_with("rocm") || name.starts_with("hip")) return Mode::rocm;
  if (name.starts_with("vulkan")) return Mode::vulkan;
  if (name.starts_with("mtl") || name.starts_with("metal")) return Mode::metal;
  return std::nullopt;
}

bool Executable::suits(Mode mode) const {
  if (mode == Mode::cpu) return true;
  return std::any_of(devices.begin(), devices.end(),
                     [mode](const Device& device) { return mode_of_device(device.name) == mode; });
}

Mode Executable::best_mode() const {
  for (const Mode mode : kAccelerators) {
    if (suits(mode)) return mode;
  }
  return Mode::cpu;
}

}  // namespace werk::engine::llama_server
