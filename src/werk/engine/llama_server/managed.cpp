#include "werk/engine/llama_server/managed.hpp"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <fstream>
#include <sstream>

#include "werk/base/digest.hpp"
#include "werk/base/text.hpp"

namespace werk::engine::llama_server {
namespace {

namespace json = boost::json;

// What ggml is compiled for by name. AVX-512 and AMX are left out on purpose: virtual machines
// wander between hosts that differ in them, and they gain little where memory is the limit.
constexpr std::array<std::string_view, 6> kFeatures{"avx", "avx2", "bmi2", "f16c", "fma", "sse4_2"};
constexpr std::size_t kFingerprintDigits = 8;
constexpr std::size_t kRecordBytesMax = 64 * 1024;

// The value of the first "name : value" line.
std::string_view cpuinfo_value(std::string_view cpuinfo, std::string_view name) {
  while (!cpuinfo.empty()) {
    const std::size_t end = std::min(cpuinfo.find('\n'), cpuinfo.size());
    const std::string_view line = cpuinfo.substr(0, end);
    cpuinfo.remove_prefix(std::min(end + 1, cpuinfo.size()));
    const std::size_t colon = line.find(':');
    if (colon != std::string_view::npos && trim(line.substr(0, colon)) == name) {
      return trim(line.substr(colon + 1));
    }
  }
  return {};
}

std::string read_text(const std::filesystem::path& path, std::size_t bytes_max) {
  std::ifstream in(path, std::ios::binary);
  std::string text(bytes_max, '\0');
  in.read(text.data(), static_cast<std::streamsize>(bytes_max));
  text.resize(static_cast<std::size_t>(in.gcount()));
  return text;
}

std::string string_member(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : std::string();
}

}  // namespace

bool Processor::has(std::string_view feature) const {
  return std::find(features.begin(), features.end(), feature) != features.end();
}

std::string Processor::fingerprint() const {
  const std::string text = fmt::format("{}:{}", architecture, fmt::join(features, ","));
  return fmt::format("{}-{}", architecture, sha256_hex(text).substr(0, kFingerprintDigits));
}

Processor parse_processor(std::string_view cpuinfo, std::string_view architecture) {
  Processor processor;
  processor.architecture = architecture;
  processor.model = printable(cpuinfo_value(cpuinfo, "model name"));
  std::string_view flags = cpuinfo_value(cpuinfo, "flags");
  while (!flags.empty()) {
    const std::string_view word = flags.substr(0, std::min(flags.find(' '), flags.size()));
    flags.remove_prefix(std::min(word.size() + 1, flags.size()));
    if (std::find(kFeatures.begin(), kFeatures.end(), word) != kFeatures.end()) {
      processor.features.emplace_back(word);
    }
  }
  std::sort(processor.features.begin(), processor.features.end());
  return processor;
}

Processor this_processor() {
  utsname name{};
  const bool named = uname(&name) == 0;
  // One processor's entry is enough, and a machine may have hundreds of them.
  return parse_processor(read_text("/proc/cpuinfo", kRecordBytesMax),
                         named ? name.machine : "unknown");
}

std::filesystem::path managed_root(const std::filesystem::path& home) {
  return home / "engines" / "llama-server";
}

std::string managed_name(std::string_view version, std::string_view fingerprint) {
  return fmt::format("{}-{}", version, fingerprint);
}

std::string managed_to_json(const ManagedEngine& engine) {
  json::object object;
  object["schema"] = 1;
  object["version"] = engine.version;
  object["source"] = engine.source;
  object["processor"] = engine.processor;
  object["built_for"] = engine.built_for;
  object["sha256"] = engine.sha256;
  object["installed_at"] = engine.installed_at;
  return json::serialize(object) + "\n";
}

Result<ManagedEngine> managed_from_json(std::string_view text) {
  boost::system::error_code error;
  const json::value value = json::parse(text, error);
  const json::object* object = error ? nullptr : value.if_object();
  if (object == nullptr) return fail(ErrorCode::io, "engine.json is not a JSON object");
  ManagedEngine engine;
  engine.version = string_member(*object, "version");
  engine.source = string_member(*object, "source");
  engine.processor = string_member(*object, "processor");
  engine.built_for = string_member(*object, "built_for");
  engine.sha256 = string_member(*object, "sha256");
  engine.installed_at = string_member(*object, "installed_at");
  if (engine.version.empty() || engine.processor.empty()) {
    return fail(ErrorCode::io, "engine.json names no version or no processor");
  }
  return engine;
}

std::vector<ManagedEngine> list_managed(const std::filesystem::path& home) {
  std::vector<ManagedEngine> engines;
  std::error_code error;
  for (std::filesystem::directory_iterator it(managed_root(home), error), end; !error && it != end;
       it.increment(error)) {
    if (it->path().filename().string().starts_with('.')) continue;
    auto engine = managed_from_json(read_text(it->path() / "engine.json", kRecordBytesMax));
    if (!engine) continue;
    engine->folder = it->path();
    if (access(engine->executable().c_str(), X_OK) != 0) continue;
    engines.push_back(std::move(*engine));
  }
  std::sort(engines.begin(), engines.end(), [](const ManagedEngine& a, const ManagedEngine& b) {
    return std::pair(b.installed_at, b.version) < std::pair(a.installed_at, a.version);
  });
  return engines;
}

std::optional<ManagedEngine> usable_managed(const std::filesystem::path& home,
                                            std::string_view fingerprint) {
  for (ManagedEngine& engine : list_managed(home)) {
    if (engine.processor == fingerprint) return std::move(engine);
  }
  return std::nullopt;
}

}  // namespace werk::engine::llama_server
