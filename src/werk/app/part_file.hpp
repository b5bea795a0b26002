// The part of a file that has come so far: what lies there from an earlier run is read back into
// the digest, new bytes are appended, and the whole gets its own name once it is on the disk. A
// hook stands before every step that writes, as in the store. Owned by one transfer; blocking.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "werk/base/digest.hpp"
#include "werk/base/result.hpp"
#include "werk/model/store_files.hpp"
#include "werk/process/descriptor.hpp"

namespace werk::app {

class PartFile {
 public:
  // Opens or makes it. More than `bytes_max` is none of this file's, and is thrown away.
  static Result<PartFile> open(const std::filesystem::path& path, std::uint64_t bytes_max,
                               model::WriteHook* hook);

  std::uint64_t size_bytes() const { return size_bytes_; }
  // Reads back what is there; `cancelled` when asked to stop.
  Status digest_present(const std::function<model::GoOn()>& go_on);
  Status append(std::string_view bytes);
  Status clear();
  // Of everything in it; may be asked once.
  std::string finish_digest() { return digest_.finish(); }
  // Makes it durable and gives it its name.
  Status publish(const std::filesystem::path& whole);
  void remove();

 private:
  PartFile(std::filesystem::path path, process::Descriptor file, model::WriteHook* hook)
      : path_(std::move(path)), file_(std::move(file)), hook_(hook) {}
  int before(model::WriteStep step) { return hook_ ? hook_->before(step) : 0; }

  std::filesystem::path path_;
  process::Descriptor file_;
  model::WriteHook* hook_;
  std::uint64_t size_bytes_ = 0;
  Sha256 digest_;
};

}  // namespace werk::app
