// The settings that only one model can have: the second table of options, without flags and
// variables.
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

#include "werk/app/settings.hpp"
#include "werk/base/digest.hpp"
#include "werk/base/text.hpp"

namespace werk::app {

namespace llama = engine::llama_server;

namespace {

constexpr std::uint64_t kTemplateBytesMax = 1024 * 1024;

Result<struct stat> look_at(const std::string& path) {
  struct stat facts {};
  if (::stat(path.c_str(), &facts) != 0) {
    return fail(ErrorCode::not_found,
                fmt::format("names {}, which can't be read: {}", path, std::strerror(errno)));
  }
  if (!S_ISREG(facts.st_mode))
    return fail(ErrorCode::invalid_request, fmt::format("names {}, which is no file", path));
  return facts;
}

Status set_chat_template(ModelSettings& model, const std::string& path) {
  const auto facts = look_at(path);
  if (!facts) return fail(facts.error());
  const auto size_bytes = static_cast<std::uint64_t>(facts->st_size);
  if (size_bytes > kTemplateBytesMax) {
    return fail(ErrorCode::invalid_request, fmt::format("names {}, which is larger than {}", path,
                                                        readable_bytes(kTemplateBytesMax)));
  }
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file.is_open() || file.bad() || text.size() != size_bytes) {
    return fail(ErrorCode::not_found,
                fmt::format("names {}, which can't be read: {}", path, std::strerror(errno)));
  }
  model.llama.chat_template = llama::OwnFile{path, sha256_hex(text), size_bytes};
  return {};
}

// Projectors are large; size and time tell one from another well enough.
Status set_projector(ModelSettings& model, const std::string& path) {
  const auto facts = look_at(path);
  if (!facts) return fail(facts.error());
  std::ifstream file(path, std::ios::binary);
  if (!file.is_open()) {
    return fail(ErrorCode::not_found,
                fmt::format("names {}, which can't be read: {}", path, std::strerror(errno)));
  }
  const std::string identity = fmt::format("{} {} {}.{}", path, facts->st_size,
                                           facts->st_mtim.tv_sec, facts->st_mtim.tv_nsec);
  model.llama.projector =
      llama::OwnFile{path, identity, static_cast<std::uint64_t>(facts->st_size)};
  return {};
}

template <auto Member>
std::string show_file(const ModelSettings& model) {
  const auto& file = model.llama.*Member;
  return file ? file->path : std::string();
}

constexpr Access kEngine = {
    nullptr, nullptr,
    [](ModelSettings& model, const std::string& value) -> Status {
      model.llama.executable = value;
      return {};
    },
    [](const ModelSettings& model) { return model.llama.executable.value_or(""); }};

constexpr Access kAliases = {
    nullptr, nullptr,
    [](ModelSettings& model, const std::string& value) -> Status {
      if (value.empty() || std::ranges::count(value, '*') > 1) {
        return fail(ErrorCode::invalid_request,
                    fmt::format("takes names that may hold one star each, not \"{}\"", value));
      }
      model.aliases.push_back(value);
      return {};
    },
    [](const ModelSettings& model) { return fmt::format("{}", fmt::join(model.aliases, "\n")); }};

constexpr Access kPin = {nullptr, nullptr,
                         [](ModelSettings& model, const std::string&) -> Status {
                           model.pinned = Permission::yes;
                           return {};
                         },
                         [](const ModelSettings& model) {
                           return std::string(model.pinned == Permission::yes ? "true" : "false");
                         }};

constexpr Access kTemplate = {nullptr, nullptr, set_chat_template,
                              show_file<&llama::LlamaServerOptions::chat_template>};
constexpr Access kProjector = {nullptr, nullptr, set_projector,
                               show_file<&llama::LlamaServerOptions::projector>};

const Option kModelOptions[] = {
    {"", "", "PROGRAM", "the llama-server that runs this model", Shape::value, kEngine, "engine"},
    {"", "", "NAME", "further names of this model, with one star at most", Shape::repeated,
     kAliases, "aliases"},
    {"", "", "", "loaded at start and never put out for another", Shape::flag, kPin, "pin"},
    {"", "", "FILE", "instead of the chat template in the weights", Shape::value, kTemplate,
     "chat_template_file"},
    {"", "", "FILE", "instead of the projector beside the weights", Shape::value, kProjector,
     "mmproj"},
};

}  // namespace

std::span<const Option> model_options() { return kModelOptions; }

}  // namespace werk::app
