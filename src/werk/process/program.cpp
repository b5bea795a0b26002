#include "werk/process/program.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

namespace werk::process {

namespace {

bool is_executable_file(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
         ::access(path.c_str(), X_OK) == 0;
}

}  // namespace

std::optional<std::string> own_variable(std::string_view name) {
  const char* value = std::getenv(std::string(name).c_str());
  if (value == nullptr) return std::nullopt;
  return std::string(value);
}

std::vector<std::string> own_environment() {
  std::vector<std::string> entries;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    entries.emplace_back(*entry);
  }
  return entries;
}

std::optional<std::string> variable_in(std::span<const std::string> entries,
                                       std::string_view name) {
  std::optional<std::string> found;
  for (const std::string& entry : entries) {
    if (entry.size() > name.size() && entry[name.size()] == '=' && entry.starts_with(name)) {
      found = entry.substr(name.size() + 1);
    }
  }
  return found;
}

std::vector<std::string> with_variable(std::vector<std::string> environment, std::string_view name,
                                       std::string_view value) {
  const std::string head = std::string(name) + "=";
  std::erase_if(environment, [&head](const std::string& entry) { return entry.starts_with(head); });
  environment.push_back(head + std::string(value));
  return environment;
}

std::optional<std::string> find_program(std::string_view name, std::string_view search_path) {
  if (name.empty()) return std::nullopt;
  if (name.contains('/')) {
    std::string path(name);
    if (is_executable_file(path)) return path;
    return std::nullopt;
  }
  while (true) {
    const std::size_t end = search_path.find(':');
    const std::string_view folder = search_path.substr(0, end);
    std::string path = folder.empty() ? "." : std::string(folder);
    path.append("/").append(name);
    if (is_executable_file(path)) return path;
    if (end == std::string_view::npos) return std::nullopt;
    search_path.remove_prefix(end + 1);
  }
}

}  // namespace werk::process
