#include "werk/model/known_digests.hpp"

#include <sys/stat.h>

#include <algorithm>

namespace werk::model {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kNsOfSecond = 1'000'000'000;
constexpr std::size_t kDigestLength = 64;

bool is_digest(std::string_view text) {
  return text.size() == kDigestLength && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

std::int64_t modified_ns(const struct stat& facts) {
  return facts.st_mtim.tv_sec * kNsOfSecond + facts.st_mtim.tv_nsec;
}

std::pair<std::uint64_t, std::uint64_t> place_of(const struct stat& facts) {
  return {facts.st_dev, facts.st_ino};
}

}  // namespace

KnownDigests::KnownDigests(const std::vector<Manifest>& installed) {
  for (const Manifest& manifest : installed) {
    for (const ManifestFile& file : manifest.files) {
      const std::string& path = file.linked ? file.path : file.origin;
      struct stat facts {};
      if (path.empty() || ::stat(path.c_str(), &facts) != 0) continue;
      const Known known{file.size_bytes, file.modified_ns, file.sha256};
      const bool unchanged = static_cast<std::uint64_t>(facts.st_size) == known.size_bytes &&
                             modified_ns(facts) == known.modified_ns;
      if (unchanged) files_.emplace(place_of(facts), known);
    }
  }
}

std::optional<std::string> KnownDigests::find(const fs::path& path) const {
  struct stat facts {};
  if (::stat(path.c_str(), &facts) != 0) return std::nullopt;
  const auto known = files_.find(place_of(facts));
  if (known != files_.end() &&
      known->second.size_bytes == static_cast<std::uint64_t>(facts.st_size) &&
      known->second.modified_ns == modified_ns(facts)) {
    return known->second.sha256;
  }
  return digest_in_name(path);
}

std::optional<std::string> digest_in_name(const fs::path& path) {
  constexpr std::string_view kOllama = "sha256-";
  std::error_code error;
  const fs::path real = fs::canonical(path, error);
  if (error || real.parent_path().filename() != "blobs") return std::nullopt;
  const std::string name = real.filename().string();
  if (name.starts_with(kOllama) && is_digest(std::string_view(name).substr(kOllama.size()))) {
    return name.substr(kOllama.size());
  }
  const std::string repository = real.parent_path().parent_path().filename().string();
  if (repository.starts_with("models--") && is_digest(name)) return name;
  return std::nullopt;
}

}  // namespace werk::model
