#include "werk/model/manifest.hpp"

#include <fmt/format.h>

#include <boost/json.hpp>

#include "werk/base/digest.hpp"

namespace werk::model {
namespace {

namespace json = boost::json;

// boost::json writes on one line; a manifest is read by people.
class PrettyPrinter {
 public:
  std::string print(const json::value& value) {
    write(value, 0);
    out_.push_back('\n');
    return std::move(out_);
  }

 private:
  void write(const json::value& value, std::size_t depth) {
    if (const json::object* object = value.if_object(); object && !object->empty()) {
      out_.push_back('{');
      for (const auto& member : *object) {
        next_line(depth + 1, &member == &*object->begin());
        out_ += json::serialize(json::string(member.key()));
        out_ += ": ";
        write(member.value(), depth + 1);
      }
      close('}', depth);
    } else if (const json::array* array = value.if_array(); array && !array->empty()) {
      out_.push_back('[');
      for (const auto& element : *array) {
        next_line(depth + 1, &element == &*array->begin());
        write(element, depth + 1);
      }
      close(']', depth);
    } else {
      out_ += json::serialize(value);
    }
  }

  void next_line(std::size_t depth, bool first) {
    if (!first) out_.push_back(',');
    out_.push_back('\n');
    out_.append(2 * depth, ' ');
  }

  void close(char bracket, std::size_t depth) {
    out_.push_back('\n');
    out_.append(2 * depth, ' ');
    out_.push_back(bracket);
  }

  std::string out_;
};

json::object to_json(const ManifestFile& file) {
  json::object object;
  object["role"] = name_of(file.role);
  object["path"] = file.path;
  object["size_bytes"] = file.size_bytes;
  object["sha256"] = file.sha256;
  if (file.linked) object["linked"] = true;
  if (!file.origin.empty()) object["origin"] = file.origin;
  if (file.linked || !file.origin.empty()) object["modified_ns"] = file.modified_ns;
  return object;
}

json::object to_json(const ModelShape& shape) {
  json::object object;
  object["layers"] = shape.layers;
  object["embedding_length"] = shape.embedding_length;
  object["heads"] = shape.heads;
  object["kv_heads_total"] = shape.kv_heads_total;
  object["key_length"] = shape.key_length;
  object["value_length"] = shape.value_length;
  return object;
}

json::object to_json(const ChatTemplateFacts& facts) {
  json::object object;
  object["present"] = facts.present;
  object["tools"] = facts.tools;
  object["system"] = facts.system;
  return object;
}

json::object to_json(const Capabilities& capabilities) {
  json::object object;
  object["chat"] = capabilities.chat;
  object["completion"] = capabilities.completion;
  object["embeddings"] = capabilities.embeddings;
  object["reranking"] = capabilities.reranking;
  object["vision"] = capabilities.vision;
  object["audio"] = capabilities.audio;
  return object;
}

std::string_view file_name_of(std::string_view path) {
  return path.substr(path.rfind('/') + 1);  // npos + 1 is 0
}

}  // namespace

std::string_view remote_of(const Manifest& manifest) {
  const std::string_view format = manifest.format;
  return format.starts_with(kRemoteFormat) ? format.substr(kRemoteFormat.size())
                                           : std::string_view();
}

std::string_view name_of(FileRole role) {
  switch (role) {
    case FileRole::weights: return "weights";
    case FileRole::projector: return "projector";
    case FileRole::tokenizer: return "tokenizer";
    case FileRole::config: return "config";
    case FileRole::other: return "other";
  }
  return "other";
}

std::string identity_of(const Manifest& manifest) {
  // The parts that come from outside and may hold anything stand last in their line or are digests.
  std::string text = "werk manifest identity 1\nformat " + sha256_hex(manifest.format) + "\n";
  for (const ManifestFile& file : manifest.files) {
    if (file.role == FileRole::other) continue;
    text += fmt::format("{} {}", name_of(file.role), file.sha256);
    const bool found_by_name = file.role == FileRole::tokenizer || file.role == FileRole::config;
    if (found_by_name) text += " " + sha256_hex(file_name_of(file.path));
    text += "\n";
  }
  return sha256_hex(text);
}

std::uint64_t kv_bytes_per_token(const ModelShape& shape) {
  constexpr std::uint64_t kBytesOfNumber = 2;
  std::uint64_t bytes = 0;
  if (__builtin_mul_overflow(shape.kv_heads_total, shape.key_length + shape.value_length, &bytes) ||
      __builtin_mul_overflow(bytes, kBytesOfNumber, &bytes)) {
    return 0;
  }
  return bytes;
}

const ManifestFile* first_file(const Manifest& manifest, FileRole role) {
  for (const ManifestFile& file : manifest.files) {
    if (file.role == role) return &file;
  }
  return nullptr;
}

std::uint64_t total_bytes(const Manifest& manifest) {
  std::uint64_t bytes = 0;
  for (const ManifestFile& file : manifest.files) bytes += file.size_bytes;
  return bytes;
}

std::string write_manifest(const Manifest& manifest) {
  json::object object;
  object["schema"] = kManifestSchema;
  object["id"] = manifest.id;
  object["aliases"] = json::array(manifest.aliases.begin(), manifest.aliases.end());
  object["identity"] = identity_of(manifest);
  object["format"] = manifest.format;
  object["name"] = manifest.name;
  object["architecture"] = manifest.architecture;
  object["quantization"] = manifest.quantization;
  object["parameters"] = manifest.parameters;
  object["training_context_tokens"] = manifest.training_context_tokens;
  object["shape"] = to_json(manifest.shape);
  object["chat_template"] = to_json(manifest.chat_template);
  object["capabilities"] = to_json(manifest.capabilities);
  json::array files;
  for (const ManifestFile& file : manifest.files) files.push_back(to_json(file));
  object["files"] = std::move(files);
  object["source"] = manifest.source;
  object["licence"] = manifest.licence;
  object["imported_at"] = manifest.imported_at;
  return PrettyPrinter().print(object);
}

}  // namespace werk::model
