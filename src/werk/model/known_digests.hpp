// Digests of files that nobody has to compute again. A file is known when an installed model links
// it or was copied from it, and it has still the size and the time it had then (two names of one
// file are one), or when it is a blob that another tool has named by its digest: Ollama's
// blobs/sha256-HEX, and the Hugging Face hub's models--*/blobs/HEX. Such a name is that tool's word
// for the content, given when it had fetched and checked it. Made from one reading of the store;
// blocks on the disk; any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "werk/model/manifest.hpp"

namespace werk::model {

class KnownDigests {
 public:
  KnownDigests() = default;
  // Of what these models link or came from, as far as it is unchanged.
  explicit KnownDigests(const std::vector<Manifest>& installed);

  // The SHA-256 of the file as it is now; links are followed.
  std::optional<std::string> find(const std::filesystem::path& path) const;

 private:
  struct Known {
    std::uint64_t size_bytes;
    std::int64_t modified_ns;
    std::string sha256;
  };
  // By device and inode: two names of one file are one.
  std::map<std::pair<std::uint64_t, std::uint64_t>, Known> files_;
};

// The digest in a blob's name; none for other files. Looks at the name only.
std::optional<std::string> digest_in_name(const std::filesystem::path& path);

}  // namespace werk::model
