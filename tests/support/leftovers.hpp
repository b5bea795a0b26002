// What imports that were stopped or killed may leave in a store. Reads the disk; any thread.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace werk::test {

// Hidden entries of the home's models: imports under way and models being deleted.
inline std::vector<std::string> store_leftovers(const std::filesystem::path& home) {
  std::vector<std::string> found;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(home / "models", ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with('.') && name != ".lock") found.push_back(name);
  }
  return found;
}

}  // namespace werk::test
