#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <optional>

#include "werk/base/text.hpp"
#include "werk/model/manifest.hpp"
#include "werk/model/model_id.hpp"

namespace werk::model {
namespace {

namespace json = boost::json;

constexpr std::size_t kDepthMax = 16;
constexpr std::size_t kTextBytesMax = 4096;
constexpr std::size_t kFilesMax = 4096;
constexpr std::size_t kAliasesMax = 256;
constexpr std::size_t kDigestDigits = 64;

enum class Need : std::uint8_t { required, optional };

// Takes members out of an object by name and type. The first fault sticks, with the member's full
// name; reads after it give nothing.
class MemberReader {
 public:
  using Fault = std::optional<std::string>;

  // `prefix` is the object's own name with a point, or empty; `fault` is shared by all readers of
  // one manifest.
  MemberReader(const json::object& object, std::string prefix, Fault& fault)
      : object_(object), prefix_(std::move(prefix)), fault_(fault) {}

  std::string full_name(std::string_view name) const { return prefix_ + std::string(name); }

  void refuse(std::string_view name, std::string_view reason) {
    if (!fault_) fault_ = fmt::format("{} {}", full_name(name), reason);
  }

  const json::value* member(std::string_view name, Need need) {
    const json::value* value = object_.if_contains(name);
    if (!value && need == Need::required) refuse(name, "is missing");
    return value;
  }

  std::string text(std::string_view name, Need need) {
    const json::value* value = member(name, need);
    return value ? text_of(*value, name) : std::string();
  }

  std::string text_of(const json::value& value, std::string_view name) {
    const json::string* text = value.if_string();
    const auto is_control = [](unsigned char c) { return c < 0x20 || c == 0x7F; };
    if (!text) {
      refuse(name, "is not a text");
    } else if (text->size() > kTextBytesMax) {
      refuse(name, "is too long");
    } else if (std::any_of(text->begin(), text->end(), is_control)) {
      refuse(name, "holds a control character");
    } else {
      return std::string(text->data(), text->size());
    }
    return {};
  }

  std::uint64_t number(std::string_view name, Need need) {
    const json::value* value = member(name, need);
    if (!value) return 0;
    if (value->is_uint64()) return value->get_uint64();
    if (value->is_int64() && value->get_int64() >= 0) {
      return static_cast<std::uint64_t>(value->get_int64());
    }
    refuse(name, "is not a whole number from 0 on");
    return 0;
  }

  std::int64_t signed_number(std::string_view name, Need need) {
    const json::value* value = member(name, need);
    if (!value) return 0;
    if (value->is_int64()) return value->get_int64();
    refuse(name, "is not a whole number");
    return 0;
  }

  bool truth(std::string_view name, Need need) {
    const json::value* value = member(name, need);
    if (!value) return false;
    if (value->is_bool()) return value->get_bool();
    refuse(name, "is neither true nor false");
    return false;
  }

  const json::array* list(std::string_view name, Need need, std::size_t most) {
    const json::value* value = member(name, need);
    if (!value) return nullptr;
    const json::array* array = value->if_array();
    if (!array) refuse(name, "is not a list");
    if (array && array->size() > most) refuse(name, "is too long a list");
    return fault_ ? nullptr : array;
  }

  // An absent object reads as an empty one.
  MemberReader object(std::string_view name) {
    static const json::object kEmpty;
    const json::value* value = member(name, Need::optional);
    const json::object* object = value ? value->if_object() : &kEmpty;
    if (!object) refuse(name, "is not an object");
    return {object ? *object : kEmpty, full_name(name) + ".", fault_};
  }

 private:
  const json::object& object_;
  std::string prefix_;
  Fault& fault_;
};

std::optional<FileRole> role_named(std::string_view name) {
  for (const FileRole role : {FileRole::weights, FileRole::projector, FileRole::tokenizer,
                              FileRole::config, FileRole::other}) {
    if (name_of(role) == name) return role;
  }
  return std::nullopt;
}

bool is_digest(std::string_view text) {
  return text.size() == kDigestDigits && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

// A file of the store lies in the model's own folder, whatever the manifest says.
bool is_inside_path(std::string_view path) {
  constexpr std::string_view kFolder = "files/";
  if (!path.starts_with(kFolder)) return false;
  const std::string_view name = path.substr(kFolder.size());
  return !name.empty() && name.find('/') == std::string_view::npos && name != "." && name != "..";
}

ManifestFile read_file(MemberReader members) {
  ManifestFile file;
  const auto role = role_named(members.text("role", Need::required));
  if (!role) members.refuse("role", "is not a role that this Werk knows");
  file.role = role.value_or(FileRole::other);
  file.path = members.text("path", Need::required);
  file.size_bytes = members.number("size_bytes", Need::required);
  file.sha256 = members.text("sha256", Need::required);
  file.linked = members.truth("linked", Need::optional);
  file.origin = members.text("origin", Need::optional);
  file.modified_ns = members.signed_number("modified_ns", Need::optional);
  if (!is_digest(file.sha256)) members.refuse("sha256", "is not 64 hexadecimal digits");
  if (!file.origin.empty() && !file.origin.starts_with('/')) {
    members.refuse("origin", "is not absolute");
  }
  if (file.linked && !file.path.starts_with('/')) members.refuse("path", "is not absolute");
  if (!file.linked && !is_inside_path(file.path)) {
    members.refuse("path", "does not name a file in the model's folder 'files'");
  }
  return file;
}

void read_files(MemberReader& members, MemberReader::Fault& fault, Manifest& manifest) {
  const json::array* files = members.list("files", Need::required, kFilesMax);
  if (!files) return;
  for (std::size_t i = 0; i < files->size() && !fault; ++i) {
    const std::string name = fmt::format("files[{}]", i);
    const json::object* object = (*files)[i].if_object();
    if (!object) return members.refuse(name, "is not an object");
    manifest.files.push_back(read_file(MemberReader(*object, name + ".", fault)));
  }
  if (!fault && !first_file(manifest, FileRole::weights)) {
    members.refuse("files", "names no weights");
  }
}

void read_names(MemberReader& members, Manifest& manifest) {
  manifest.id = members.text("id", Need::required);
  if (const Status right = check_model_id(manifest.id); !right) {
    members.refuse("id", "is not a model name");
  }
  const json::array* aliases = members.list("aliases", Need::optional, kAliasesMax);
  for (std::size_t i = 0; aliases && i < aliases->size(); ++i) {
    const std::string name = fmt::format("aliases[{}]", i);
    manifest.aliases.push_back(members.text_of((*aliases)[i], name));
    if (const Status right = check_model_id(manifest.aliases.back()); !right) {
      members.refuse(name, "is not a model name");
    }
  }
}

void read_facts(MemberReader& members, Manifest& manifest) {
  manifest.format = members.text("format", Need::required);
  manifest.name = members.text("name", Need::optional);
  manifest.architecture = members.text("architecture", Need::required);
  manifest.quantization = members.text("quantization", Need::optional);
  manifest.parameters = members.number("parameters", Need::optional);
  manifest.training_context_tokens = members.number("training_context_tokens", Need::optional);
  MemberReader shape = members.object("shape");
  manifest.shape = {
      shape.number("layers", Need::optional),     shape.number("embedding_length", Need::optional),
      shape.number("heads", Need::optional),      shape.number("kv_heads_total", Need::optional),
      shape.number("key_length", Need::optional), shape.number("value_length", Need::optional)};
  MemberReader facts = members.object("chat_template");
  manifest.chat_template = {facts.truth("present", Need::optional),
                            facts.truth("tools", Need::optional),
                            facts.truth("system", Need::optional)};
  MemberReader can = members.object("capabilities");
  manifest.capabilities = {
      can.truth("chat", Need::optional),       can.truth("completion", Need::optional),
      can.truth("embeddings", Need::optional), can.truth("reranking", Need::optional),
      can.truth("vision", Need::optional),     can.truth("audio", Need::optional)};
  manifest.source = members.text("source", Need::optional);
  manifest.licence = members.text("licence", Need::optional);
  manifest.imported_at = members.text("imported_at", Need::optional);
}

tl::unexpected<Error> refused(std::string_view reason) {
  return fail(ErrorCode::model_unusable, fmt::format("The manifest is unusable: {}.", reason));
}

}  // namespace

Result<Manifest> read_manifest(std::string_view text) {
  if (text.size() > kManifestBytesMax) return refused("it is larger than 1 MiB");
  if (!is_valid_utf8(text)) return refused("it is not valid UTF-8");
  json::parse_options options;
  options.max_depth = kDepthMax;
  json::error_code error;
  const json::value value = json::parse({text.data(), text.size()}, error, {}, options);
  if (error) return refused(fmt::format("it is not JSON ({})", error.message()));
  const json::object* object = value.if_object();
  if (!object) return refused("it is not a JSON object");

  MemberReader::Fault fault;
  MemberReader members(*object, "", fault);
  const std::uint64_t schema = members.number("schema", Need::required);
  if (!fault && schema > kManifestSchema) {
    return refused(fmt::format("schema is {}, written by a later Werk than this one", schema));
  }
  if (!fault && schema == 0) members.refuse("schema", "is 0");
  Manifest manifest;
  read_names(members, manifest);
  read_facts(members, manifest);
  read_files(members, fault, manifest);
  const std::string identity = members.text("identity", Need::optional);
  if (!fault && !identity.empty() && identity != identity_of(manifest)) {
    members.refuse("identity", "does not belong to the files (was one of them edited?)");
  }
  if (fault) return refused(*fault);
  return manifest;
}

}  // namespace werk::model
