// What one installed model is, as plain data, and its form on disk: manifest.json, written for
// people too. Reading is strict about the type and range of every member it knows, ignores members
// it does not know, and is bounded; what it accepts, an engine may be started with. Pure; any
// thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "werk/base/result.hpp"
#include "werk/model/chat_template.hpp"

namespace werk::model {

// Of manifest.json. A larger one in a file was written by a later Werk and is refused.
inline constexpr std::uint64_t kManifestSchema = 1;
inline constexpr std::size_t kManifestBytesMax = 1024 * 1024;

enum class FileRole : std::uint8_t {
  weights,    // in the order an engine is given them; the first is named on its launch line
  projector,  // images or sound for a text model
  tokenizer,
  config,
  other  // licences and the like; decides nothing
};

struct ManifestFile {
  FileRole role = FileRole::weights;
  // "files/NAME" below the model's folder; of a linked file the absolute path.
  std::string path;
  std::uint64_t size_bytes = 0;
  std::string sha256;
  // The file belongs to somebody else and is used where it lies; never deleted.
  bool linked = false;
  // Of a linked file or of the origin, at import: nanoseconds since 1970.
  std::int64_t modified_ns = 0;
  // Of a copied file: the absolute path it came from, so that it is known when it is met again;
  // empty where that does not matter.
  std::string origin = {};
};

struct Capabilities {
  bool chat = false;        // generates text and has a chat template
  bool completion = false;  // generates text
  bool embeddings = false;
  bool reranking = false;
  bool vision = false;  // a projector for images is among the files
  bool audio = false;   // a projector for sound is
};

// For estimates of memory; 0 where it is not known.
struct ModelShape {
  std::uint64_t layers = 0;
  std::uint64_t embedding_length = 0;
  std::uint64_t heads = 0;
  std::uint64_t kv_heads_total = 0;  // of all layers together
  std::uint64_t key_length = 0;      // of one head
  std::uint64_t value_length = 0;
};

struct Manifest {
  std::string id;
  std::vector<std::string> aliases;
  std::string format = "gguf";  // or, later, "onnx-genai", "safetensors"
  std::string name;             // what the model calls itself
  std::string architecture;
  std::string quantization;
  std::uint64_t parameters = 0;
  std::uint64_t training_context_tokens = 0;
  ModelShape shape;
  ChatTemplateFacts chat_template;
  Capabilities capabilities;
  std::vector<ManifestFile> files;
  std::string source;       // where it came from, for people
  std::string licence;      // likewise
  std::string imported_at;  // "2026-11-29T22:44:02Z"
};

// The manifest identity, 64 hexadecimal digits: a digest of the format and of the files that decide
// how the model behaves (their roles, order and contents; for files that an engine finds by name
// also the name). Ids, paths, licence, source and dates are no part of it, so the same file
// imported twice, copied or linked, has one identity.
std::string identity_of(const Manifest& manifest);

// Bytes of a token's keys and values in all layers at 16 bits each; 0 where the shape is not known.
std::uint64_t kv_bytes_per_token(const ModelShape& shape);

// Of a model that no store holds: the name of the remote that serves it, from its format
// ("remote:lab"); empty for installed ones.
inline constexpr std::string_view kRemoteFormat = "remote:";
std::string_view remote_of(const Manifest& manifest);

std::string_view name_of(FileRole role);

// Null when there is no such file.
const ManifestFile* first_file(const Manifest& manifest, FileRole role);
std::uint64_t total_bytes(const Manifest& manifest);

// Members in a fixed order, two spaces of indentation, a newline at the end. Holds the identity as
// well.
std::string write_manifest(const Manifest& manifest);

// Fails with `model_unusable` and the member at fault ("files[1].sha256 is not ..."): wrong JSON, a
// missing member, a wrong type, an id or a path that may not be, an identity that does not belong
// to the files.
Result<Manifest> read_manifest(std::string_view text);

}  // namespace werk::model
