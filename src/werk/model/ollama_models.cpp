// Ollama: manifests/HOST/NAMESPACE/MODEL/TAG is a JSON list of layers, each a blob named by its
// digest. One layer holds the weights as a GGUF file, others a projector, a template, parameters.
// Source of the names: Ollama's own listing.
#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "werk/base/text.hpp"
#include "werk/model/tool_reading.hpp"

namespace werk::model {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

constexpr std::string_view kTool = "Ollama";
constexpr std::string_view kLayer = "application/vnd.ollama.image.";

struct OllamaName {
  std::string host;
  std::string space;
  std::string model;
  std::string tag;

  // Without what Ollama leaves out itself.
  std::string text() const {
    std::string text;
    if (host != "registry.ollama.ai") text += host + "/";
    if (host != "registry.ollama.ai" || space != "library") text += space + "/";
    return printable(text + model + ":" + tag);
  }
};

struct Layers {
  std::vector<std::string> weights;  // digests
  std::string projector;
  bool adapter = false;
  bool tensors = false;
};

bool is_digest(std::string_view text) {
  constexpr std::string_view kStart = "sha256:";
  constexpr std::size_t kDigits = 64;
  if (!text.starts_with(kStart) || text.size() != kStart.size() + kDigits) return false;
  return std::all_of(text.begin() + kStart.size(), text.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

Layers layers_in(const json::object& manifest) {
  Layers layers;
  const json::value* list = manifest.if_contains("layers");
  if (!list || !list->is_array()) return layers;
  for (const json::value& value : list->get_array()) {
    if (!value.is_object()) continue;
    const json::object& layer = value.get_object();
    const std::string type = text_in(layer, "mediaType");
    if (!type.starts_with(kLayer)) continue;
    const std::string_view kind = std::string_view(type).substr(kLayer.size());
    if (kind == "model") layers.weights.push_back(text_in(layer, "digest"));
    if (kind == "projector") layers.projector = text_in(layer, "digest");
    if (kind == "adapter") layers.adapter = true;
    if (kind.starts_with("tensor")) layers.tensors = true;
  }
  return layers;
}

// A digest is checked before it is part of a path: manifests are foreign text.
fs::path blob(const fs::path& folder, std::string digest) {
  std::replace(digest.begin(), digest.end(), ':', '-');
  return folder / "blobs" / digest;
}

std::string reason_against(const Layers& layers) {
  if (layers.tensors) return "It is no GGUF (safetensors).";
  if (layers.weights.empty()) return "It has no weights here; Ollama's servers run it.";
  if (layers.weights.size() > 1)
    return "Its weights lie in several blobs, which is not understood.";
  if (layers.adapter) return "It has an adapter (LoRA), which would not be applied.";
  const bool known = is_digest(layers.weights.front()) &&
                     (layers.projector.empty() || is_digest(layers.projector));
  return known ? std::string() : "Its manifest is not understood.";
}

ToolModel read_model(const fs::path& folder, const fs::path& file, const OllamaName& name) {
  const auto manifest = read_object(file);
  if (!manifest) return unusable_model(kTool, name.text(), file, "Its manifest is not understood.");
  const Layers layers = layers_in(*manifest);
  if (std::string reason = reason_against(layers); !reason.empty()) {
    return unusable_model(kTool, name.text(), file, std::move(reason));
  }
  const fs::path weights = blob(folder, layers.weights.front());
  std::error_code error;
  if (!fs::exists(weights, error)) {
    return unusable_model(kTool, name.text(), weights,
                          error ? "Its blob can't be read." : "Its blob is missing.");
  }
  std::optional<fs::path> projector;
  if (!layers.projector.empty()) projector = blob(folder, layers.projector);
  ToolModel model = planned_model(kTool, name.text(), weights, ProjectorRule::none, projector);
  if (model.plan && model.plan->weights.encoder_inside) {
    return unusable_model(kTool, name.text(), weights,
                          "Its image encoder is in the same file, which only Ollama reads.");
  }
  constexpr std::string_view kLatest = ":latest";
  if (model.name.ends_with(kLatest)) {
    model.aliases.push_back(model.name.substr(0, model.name.size() - kLatest.size()));
  }
  return model;
}

}  // namespace

void read_ollama(const fs::path& folder, ToolScan& scan) {
  for (const fs::path& host : entries_of(folder / "manifests", kTool, scan)) {
    for (const fs::path& space : entries_of(host, kTool, scan)) {
      for (const fs::path& model : entries_of(space, kTool, scan)) {
        for (const fs::path& tag : entries_of(model, kTool, scan)) {
          const OllamaName name{host.filename(), space.filename(), model.filename(),
                                tag.filename()};
          if (name.tag.starts_with('.')) continue;
          scan.models.push_back(read_model(folder, tag, name));
        }
      }
    }
  }
}

}  // namespace werk::model
