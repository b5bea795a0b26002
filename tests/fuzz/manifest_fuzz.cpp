// Any bytes as a manifest.json: it is read or refused with a reason, what is read can be written
// and reads back as the same text, and no path leads out of the model's folder. The same bytes as
// a model name: every allowed name has a folder name of its own that gives it back.
#include <cstdint>
#include <string>
#include <string_view>

#include "werk/base/assert.hpp"
#include "werk/model/manifest.hpp"
#include "werk/model/model_id.hpp"
#include "werk/model/model_name.hpp"

namespace werk::model {
namespace {

void check_manifest(std::string_view text) {
  const Result<Manifest> manifest = read_manifest(text);
  if (!manifest) {
    WERK_ASSERT(manifest.error().code == ErrorCode::model_unusable);
    WERK_ASSERT(!manifest.error().message.empty());
    return;
  }
  WERK_ASSERT(first_file(*manifest, FileRole::weights) != nullptr);
  for (const ManifestFile& file : manifest->files) {
    WERK_ASSERT(file.linked ? file.path.starts_with('/') : file.path.starts_with("files/"));
    WERK_ASSERT(file.linked || file.path.find('/') == file.path.rfind('/'));
  }
  const std::string written = write_manifest(*manifest);
  const Result<Manifest> again = read_manifest(written);
  WERK_ASSERT(again.has_value() || written.size() > kManifestBytesMax);
  WERK_ASSERT(!again || write_manifest(*again) == written);
}

void check_name(std::string_view text) {
  WERK_ASSERT(check_model_id(tidied_model_id(text)).has_value());
  part_name(text);
  folder_id(text);
  if (!check_model_id(text)) return;
  const std::string folder = folder_name(text);
  WERK_ASSERT(!folder.empty() && folder.size() <= 255 && folder.front() != '.');
  WERK_ASSERT(folder.find('/') == std::string::npos);
  const auto id = folder_id(folder);
  WERK_ASSERT(id ? *id == text : folder.find("%~") != std::string::npos);
}

}  // namespace
}  // namespace werk::model

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  werk::model::check_manifest(text);
  werk::model::check_name(text);
  return 0;
}
