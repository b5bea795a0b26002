#include "werk/model/home.hpp"

#include <cstdlib>

namespace werk::model {
namespace {

std::filesystem::path value_of(const Environment& environment, const char* name) {
  return environment(name).value_or(std::string());
}

}  // namespace

Environment process_environment() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    return value ? std::optional<std::string>(value) : std::nullopt;
  };
}

Result<std::filesystem::path> home_folder(const Environment& environment,
                                          const std::filesystem::path& current_folder) {
  const std::filesystem::path named = value_of(environment, "WERK_HOME");
  if (!named.empty()) return (current_folder / named).lexically_normal();
  const std::filesystem::path data = value_of(environment, "XDG_DATA_HOME");
  if (data.is_absolute()) return (data / "werk").lexically_normal();
  const std::filesystem::path user = value_of(environment, "HOME");
  if (user.is_absolute()) return (user / ".local/share/werk").lexically_normal();
  return fail(ErrorCode::invalid_request,
              "No home folder is known: set WERK_HOME (or HOME) to an absolute path.");
}

}  // namespace werk::model
