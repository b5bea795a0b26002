#include "werk/model/engine_folder.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <fstream>
#include <iterator>
#include <set>

#include "werk/base/text.hpp"

namespace werk::model {

namespace json = boost::json;
namespace fs = std::filesystem;

namespace {

constexpr std::int64_t kNsOfSecond = 1'000'000'000;
constexpr std::uint64_t kConfigBytesMax = std::uint64_t{32} << 20;
constexpr std::uint64_t kHeaderBytesMax = std::uint64_t{100} << 20;  // of a safetensors file
constexpr std::string_view kGenAi = "genai_config.json";
constexpr std::string_view kConfig = "config.json";
constexpr std::string_view kTokenizerConfig = "tokenizer_config.json";
constexpr std::string_view kTemplate = "chat_template.jinja";
constexpr std::string_view kShards = "model.safetensors.index.json";

constexpr std::array<std::string_view, 9> kTokenizerFiles = {
    "tokenizer.json", "tokenizer.model", "tokenizer_config.json",   "vocab.json",
    "vocab.txt",      "merges.txt",      "special_tokens_map.json", "added_tokens.json",
    "spiece.model"};
// Any of them makes a tokenizer.
constexpr std::array<std::string_view, 5> kVocabularies = {
    "tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt", "spiece.model"};
constexpr std::array<std::string_view, 6> kConfigFiles = {
    "config.json",         "generation_config.json", "genai_config.json",
    "chat_template.jinja", "chat_template.json",     "preprocessor_config.json"};

bool among(std::string_view name, std::span<const std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

tl::unexpected<Error> unusable(const fs::path& path, std::string_view reason) {
  return fail(ErrorCode::model_unusable, fmt::format("{}: {}", path.string(), reason));
}

bool is_file(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

Result<std::string> read_text(const fs::path& path) {
  std::error_code error;
  const std::uintmax_t size = fs::file_size(path, error);
  if (error) return unusable(path, "This file is missing.");
  if (size > kConfigBytesMax)
    return unusable(path, "This file is too long to be what its name says.");
  std::ifstream file(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (file.bad()) return fail(ErrorCode::io, fmt::format("{} can't be read.", path.string()));
  return text;
}

Result<json::object> read_object(const fs::path& path) {
  Result<std::string> text = read_text(path);
  if (!text) return pass_on(text);
  boost::system::error_code error;
  json::value value = json::parse(*text, error);
  if (error || !value.is_object()) return unusable(path, "This is no JSON object.");
  return std::move(value.get_object());
}

std::uint64_t number(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  if (value == nullptr || !value->is_int64() || value->get_int64() < 0) return 0;
  return static_cast<std::uint64_t>(value->get_int64());
}

std::string word(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  return value != nullptr && value->is_string() ? printable(std::string_view(value->get_string()))
                                                : std::string();
}

const json::object* part(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  return value != nullptr && value->is_object() ? &value->get_object() : nullptr;
}

// The template's own text, from its file or from the tokenizer's configuration, where it may be a
// list of named ones.
std::string chat_template(const fs::path& folder) {
  if (auto text = read_text(folder / kTemplate)) return std::move(*text);
  const auto config = read_object(folder / kTokenizerConfig);
  if (!config) return {};
  const json::value* value = config->if_contains("chat_template");
  if (value == nullptr) return {};
  if (value->is_string()) return std::string(value->get_string());
  std::string all;
  if (!value->is_array()) return all;
  for (const json::value& one : value->get_array()) {
    if (one.is_object()) all += word(one.get_object(), "template") + "\n";
  }
  return all;
}

// All tensors' elements, from the file's own table.
Result<std::uint64_t> parameters_in(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::array<unsigned char, 8> head{};
  file.read(reinterpret_cast<char*>(head.data()), head.size());
  std::uint64_t length = 0;
  for (std::size_t i = head.size(); i-- > 0;) length = (length << 8u) | head[i];
  if (!file || length > kHeaderBytesMax) return unusable(path, "This is no safetensors file.");
  std::string text(length, '\0');
  file.read(text.data(), static_cast<std::streamsize>(length));
  boost::system::error_code error;
  const json::value table = json::parse(text, error);
  if (!file || error || !table.is_object()) return unusable(path, "This safetensors file is cut.");
  std::uint64_t sum = 0;
  std::uint64_t end = 0;
  for (const auto& [name, tensor] : table.get_object()) {
    const json::object* facts = tensor.if_object();
    const json::value* shape = facts == nullptr ? nullptr : facts->if_contains("shape");
    const json::value* offsets = facts == nullptr ? nullptr : facts->if_contains("data_offsets");
    if (shape == nullptr || !shape->is_array()) continue;
    std::uint64_t elements = 1;
    for (const json::value& size : shape->get_array()) {
      if (!size.is_int64() || size.get_int64() < 0 ||
          __builtin_mul_overflow(elements, static_cast<std::uint64_t>(size.get_int64()), &elements))
        return unusable(path, "A tensor's shape is wrong.");
    }
    if (offsets != nullptr && offsets->is_array() && offsets->get_array().size() == 2 &&
        offsets->get_array()[1].is_int64())
      end = std::max(end, static_cast<std::uint64_t>(offsets->get_array()[1].get_int64()));
    if (__builtin_add_overflow(sum, elements, &sum)) return unusable(path, "Too many parameters.");
  }
  std::error_code size_error;
  if (fs::file_size(path, size_error) < head.size() + length + end)
    return unusable(path, "This safetensors file is cut.");
  return sum;
}

class FolderPlan {
 public:
  explicit FolderPlan(fs::path folder) : folder_(std::move(folder)) {}

  Status add(FileRole role, const std::string& name) {
    if (!taken_.insert(name).second) return {};
    const fs::path path = folder_ / name;
    struct stat facts {};
    if (::stat(path.c_str(), &facts) != 0) return unusable(path, "This file is missing.");
    plan_.files.push_back({role, path, name, static_cast<std::uint64_t>(facts.st_size),
                           facts.st_mtim.tv_sec * kNsOfSecond + facts.st_mtim.tv_nsec});
    return {};
  }

  // Everything else that belongs to a model, by name.
  Status add_small_files() {
    std::error_code error;
    std::vector<std::string> names;
    for (fs::directory_iterator each(folder_, error), last; !error && each != last;
         each.increment(error)) {
      if (is_file(each->path())) names.push_back(each->path().filename().string());
    }
    if (error) return fail(ErrorCode::io, fmt::format("{}: {}", folder_.string(), error.message()));
    std::ranges::sort(names);
    for (const std::string& name : names) {
      Status added;
      if (among(name, kTokenizerFiles)) added = add(FileRole::tokenizer, name);
      if (among(name, kConfigFiles)) added = add(FileRole::config, name);
      if (to_lower(name).starts_with("license")) added = add(FileRole::other, name);
      if (!added) return added;
    }
    return {};
  }

  Status need_tokenizer() const {
    const bool there = std::ranges::any_of(
        kVocabularies, [&](std::string_view name) { return is_file(folder_ / name); });
    if (there) return {};
    return unusable(folder_, fmt::format("There is no tokenizer (none of {}).",
                                         fmt::join(kVocabularies, ", ")));
  }

  void set_facts(Manifest facts) {
    facts.chat_template = look_at_chat_template(chat_template(folder_));
    facts.capabilities.completion = true;
    facts.capabilities.chat = facts.chat_template.present;
    if (facts.name.empty()) facts.name = folder_.filename().string();
    plan_.facts = std::move(facts);
  }

  const fs::path& folder() const { return folder_; }
  ImportPlan take() { return std::move(plan_); }

 private:
  fs::path folder_;
  ImportPlan plan_;
  std::set<std::string> taken_;
};

Result<ImportPlan> plan_genai(FolderPlan& plan) {
  const fs::path& folder = plan.folder();
  const auto config = read_object(folder / kGenAi);
  if (!config) return fail(config.error());
  const json::object* model = part(*config, "model");
  const json::object* decoder = model == nullptr ? nullptr : part(*model, "decoder");
  const std::string file = decoder == nullptr ? std::string() : word(*decoder, "filename");
  if (file.empty() || file.find('/') != std::string::npos)
    return unusable(folder / kGenAi, "It names no model file (model.decoder.filename).");
  if (Status added = plan.add(FileRole::weights, file); !added) return pass_on(added);
  // Weights that don't fit into the graph's own file.
  for (const std::string_view ending : {".data", "_data"}) {
    const std::string data = file + std::string(ending);
    if (!is_file(folder / data)) continue;
    if (Status added = plan.add(FileRole::weights, data); !added) return pass_on(added);
  }
  if (Status there = plan.need_tokenizer(); !there) return pass_on(there);
  if (Status added = plan.add_small_files(); !added) return pass_on(added);
  Manifest facts;
  facts.format = "onnx-genai";
  facts.architecture = word(*model, "type");
  facts.training_context_tokens = number(*model, "context_length");
  facts.shape.layers = number(*decoder, "num_hidden_layers");
  facts.shape.embedding_length = number(*decoder, "hidden_size");
  facts.shape.heads = number(*decoder, "num_attention_heads");
  facts.shape.kv_heads_total = number(*decoder, "num_key_value_heads") * facts.shape.layers;
  facts.shape.key_length = number(*decoder, "head_size");
  facts.shape.value_length = facts.shape.key_length;
  plan.set_facts(std::move(facts));
  return plan.take();
}

// Of one file, or of a set that its index names.
Result<std::vector<std::string>> weight_files(const fs::path& folder) {
  if (is_file(folder / kShards)) {
    const auto index = read_object(folder / kShards);
    if (!index) return fail(index.error());
    const json::object* map = part(*index, "weight_map");
    std::set<std::string> names;
    if (map != nullptr) {
      for (const auto& [tensor, file] : *map) {
        if (file.is_string()) names.emplace(file.get_string());
      }
    }
    const auto is_plain = [](const std::string& name) {
      return !name.empty() && name.find('/') == std::string::npos && !name.starts_with('.');
    };
    if (names.empty() || !std::ranges::all_of(names, is_plain))
      return unusable(folder / kShards, "It names no files (weight_map).");
    return std::vector<std::string>(names.begin(), names.end());
  }
  if (is_file(folder / "model.safetensors")) return std::vector<std::string>{"model.safetensors"};
  const bool pickled =
      is_file(folder / "pytorch_model.bin") || is_file(folder / "pytorch_model.bin.index.json");
  return unusable(folder, pickled ? "The weights are a pickle (pytorch_model.bin), which may hold "
                                    "code; convert them to safetensors."
                                  : "There are no weights (model.safetensors or "
                                    "model.safetensors.index.json).");
}

Manifest facts_of(const json::object& config) {
  Manifest facts;
  facts.format = "safetensors";
  facts.architecture = word(config, "model_type");
  facts.quantization = word(config, "dtype");
  if (facts.quantization.empty()) facts.quantization = word(config, "torch_dtype");
  const json::object* text = part(config, "text_config");
  const json::object& shape = text == nullptr ? config : *text;
  facts.training_context_tokens = number(shape, "max_position_embeddings");
  facts.shape.layers = number(shape, "num_hidden_layers");
  facts.shape.embedding_length = number(shape, "hidden_size");
  facts.shape.heads = number(shape, "num_attention_heads");
  const std::uint64_t kv_heads = number(shape, "num_key_value_heads");
  facts.shape.kv_heads_total = (kv_heads == 0 ? facts.shape.heads : kv_heads) * facts.shape.layers;
  facts.shape.key_length = number(shape, "head_dim");
  if (facts.shape.key_length == 0 && facts.shape.heads > 0)
    facts.shape.key_length = facts.shape.embedding_length / facts.shape.heads;
  facts.shape.value_length = facts.shape.key_length;
  return facts;
}

Result<ImportPlan> plan_safetensors(FolderPlan& plan) {
  const fs::path& folder = plan.folder();
  const auto config = read_object(folder / kConfig);
  if (!config) return fail(config.error());
  auto weights = weight_files(folder);
  if (!weights) return pass_on(weights);
  Manifest facts = facts_of(*config);
  for (const std::string& name : *weights) {
    if (Status added = plan.add(FileRole::weights, name); !added) return pass_on(added);
    const auto parameters = parameters_in(folder / name);
    if (!parameters) return fail(parameters.error());
    facts.parameters += *parameters;
  }
  if (is_file(folder / kShards)) {
    if (Status added = plan.add(FileRole::config, std::string(kShards)); !added)
      return pass_on(added);
  }
  if (Status there = plan.need_tokenizer(); !there) return pass_on(there);
  if (Status added = plan.add_small_files(); !added) return pass_on(added);
  plan.set_facts(std::move(facts));
  return plan.take();
}

}  // namespace

bool is_engine_folder(const fs::path& folder) {
  if (is_file(folder / kGenAi) || is_file(folder / kShards) ||
      is_file(folder / "model.safetensors"))
    return true;
  if (!is_file(folder / kConfig)) return false;
  // Repositories of GGUF files keep the configuration of what they were made from.
  std::error_code error;
  for (fs::directory_iterator each(folder, error), last; !error && each != last;
       each.increment(error)) {
    if (to_lower(each->path().extension().string()) == ".gguf") return false;
  }
  return true;
}

Result<ImportPlan> plan_engine_folder(const fs::path& folder) {
  std::error_code error;
  fs::path whole = fs::absolute(folder, error).lexically_normal();
  if (!whole.has_filename()) whole = whole.parent_path();
  FolderPlan plan(whole);
  return is_file(whole / kGenAi) ? plan_genai(plan) : plan_safetensors(plan);
}

}  // namespace werk::model
