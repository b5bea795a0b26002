#include "werk/engine/llama_server/finder.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>

#include "werk/base/log.hpp"
#include "werk/base/text.hpp"
#include "werk/engine/llama_server/failure.hpp"
#include "werk/engine/llama_server/managed.hpp"
#include "werk/engine/llama_server/probe_cache.hpp"
#include "werk/process/captured.hpp"
#include "werk/process/program.hpp"

namespace werk::engine::llama_server {
namespace {

constexpr std::size_t kOutputBytesMax = 1024 * 1024;
constexpr std::size_t kReasonBytesMax = 300;
constexpr std::string_view kProgram = "llama-server";
// Only those that can be seen in a list of devices; the order is that of preference.
constexpr std::array kAutoOrder{Mode::cuda, Mode::rocm, Mode::metal, Mode::vulkan, Mode::cpu};
constexpr std::string_view kWaysToSupply =
    "Install one with `werk engine install llama-server`, put one into PATH, or name one in "
    "WERK_LLAMA_SERVER";

std::string label_of(Mode mode) {
  switch (mode) {
    case Mode::cpu: return "processor";
    case Mode::cuda: return "CUDA device";
    case Mode::rocm: return "ROCm device";
    case Mode::vulkan: return "Vulkan device";
    case Mode::metal: return "Metal device";
  }
  return "device";
}

std::string absolute(const std::string& path) {
  std::error_code error;
  const std::filesystem::path whole = std::filesystem::absolute(path, error);
  return error ? path : whole.lexically_normal().string();
}

Error none_suits(Mode mode, const std::vector<std::string>& failures, std::size_t usable) {
  std::string message;
  if (usable == 0) {
    message = fmt::format("There is no usable llama-server. {}", kWaysToSupply);
  } else {
    message = fmt::format(
        "No llama-server here has a {}. Name one that does in {}, or choose another "
        "--backend",
        label_of(mode), variable_of(mode));
  }
  if (!failures.empty()) message += fmt::format(" ({})", fmt::join(failures, "; "));
  return Error{ErrorCode::not_found, std::move(message)};
}

}  // namespace

std::optional<FileIdentity> identity_of(const std::string& path) {
  struct stat found {};
  if (stat(path.c_str(), &found) != 0 || !S_ISREG(found.st_mode)) return std::nullopt;
  FileIdentity identity;
  identity.size_bytes = static_cast<std::uint64_t>(found.st_size);
  identity.changed_ns = found.st_mtim.tv_sec * 1'000'000'000 + found.st_mtim.tv_nsec;
  identity.inode = found.st_ino;
  return identity;
}

Finder::Finder(process::Children& children, async::Clock& clock, async::Offload& offload,
               FinderSettings settings)
    : children_(children),
      clock_(clock),
      offload_(offload),
      settings_(std::move(settings)),
      fingerprint_(this_processor().fingerprint()) {}

std::filesystem::path Finder::cache_file() const {
  return settings_.home / "cache" / "llama-server-probes.json";
}

async::awaitable<Result<Executable>> Finder::find(Mode mode, std::stop_token stop) {
  if (const auto found = found_.find(mode); found != found_.end()) {
    const auto known = known_.find(found->second.path);
    if (known != known_.end() && identity_of(found->second.path) == found->second.identity) {
      co_return known->second.executable;
    }
    found_.erase(found);
  }
  std::string variable = variable_of(mode);
  std::optional<std::string> named = settings_.named.by_mode[static_cast<std::size_t>(mode)];
  if (!named) {
    variable = settings_.named.any_mode_name;
    named = settings_.named.any_mode;
  }
  Result<Executable> result = fail(ErrorCode::internal, "nothing was looked at");
  if (named) {
    result = co_await examine_named(variable, *named, stop);
    if (result && !result->suits(mode)) {
      result = fail(ErrorCode::not_found, fmt::format("{} names '{}', which has no {}", variable,
                                                      *named, label_of(mode)));
    }
  } else {
    auto all = co_await survey(stop);
    if (!all) co_return pass_on(all);
    const auto suited = std::find_if(all->usable.begin(), all->usable.end(),
                                     [mode](const Executable& one) { return one.suits(mode); });
    if (suited == all->usable.end()) {
      co_return fail(none_suits(mode, all->failures, all->usable.size()));
    }
    result = *suited;
  }
  if (!result) co_return pass_on(result);
  if (const auto identity = identity_of(result->path)) {
    found_.insert_or_assign(mode, Found{result->path, *identity});
  }
  co_return result;
}

async::awaitable<Result<Finder::Choice>> Finder::choose(std::stop_token stop) {
  for (const Mode mode : kAutoOrder) {
    const bool own_name = settings_.named.by_mode[static_cast<std::size_t>(mode)].has_value();
    // A name for the processor's own engine does not mean that no accelerator is wanted.
    if (!own_name || mode == Mode::cpu) continue;
    auto named = co_await find(mode, stop);
    if (!named) co_return pass_on(named);
    co_return Choice{mode, std::move(*named)};
  }
  if (settings_.named.any_mode) {
    std::string variable = settings_.named.any_mode_name;
    auto named = co_await examine_named(variable, *settings_.named.any_mode, stop);
    if (!named) co_return pass_on(named);
    const Mode mode = named->best_mode();
    if (mode != Mode::cpu) co_return Choice{mode, std::move(*named)};
  } else {
    auto all = co_await survey(stop);
    if (!all) co_return pass_on(all);
    for (const Executable& one : all->usable) {
      const Mode mode = one.best_mode();
      if (mode != Mode::cpu) co_return Choice{mode, one};
    }
  }
  auto processor = co_await find(Mode::cpu, stop);
  if (!processor) co_return pass_on(processor);
  co_return Choice{Mode::cpu, std::move(*processor)};
}

async::awaitable<Result<Executable>> Finder::examine_named(std::string variable, std::string value,
                                                           std::stop_token stop) {
  const auto path = process::find_program(value, settings_.search_path);
  if (!path) {
    co_return fail(
        ErrorCode::not_found,
        fmt::format("{} names '{}', and there is no such executable file", variable, value));
  }
  auto examined = co_await examine(*path, stop);
  if (!examined && examined.error().code != ErrorCode::cancelled) {
    examined.error().message = fmt::format("{} names '{}', which cannot be used: {}", variable,
                                           value, examined.error().message);
  }
  co_return examined;
}

async::awaitable<Result<Finder::Survey>> Finder::survey(std::stop_token stop) {
  const auto scan = [home = settings_.home, fingerprint = fingerprint_] {
    return usable_managed(home, fingerprint);
  };
  const auto managed = co_await offload_.run(scan);
  std::vector<std::string> paths;
  if (managed) paths.push_back(managed->executable().string());
  if (const auto in_path = process::find_program(kProgram, settings_.search_path)) {
    paths.push_back(*in_path);
  }
  Survey result;
  for (const std::string& path : paths) {
    auto examined = co_await examine(path, stop);
    if (examined) {
      result.usable.push_back(std::move(*examined));
      continue;
    }
    if (examined.error().code == ErrorCode::cancelled) co_return pass_on(examined);
    log::warn("llama-server at {} is passed over: {}", path, examined.error().message);
    result.failures.push_back(fmt::format("{}: {}", path, examined.error().message));
  }
  co_return result;
}

async::awaitable<Result<std::string>> Finder::run(std::string path, std::string argument,
                                                  std::vector<std::string> environment,
                                                  std::stop_token stop) {
  process::Command command;
  command.program = path;
  command.arguments.push_back(argument);
  command.environment = std::move(environment);
  auto captured = co_await process::run_captured(children_, clock_, std::move(command),
                                                 settings_.limit, kOutputBytesMax, stop);
  if (!captured) {
    const ErrorCode code =
        captured.error().code == ErrorCode::cancelled ? ErrorCode::cancelled : ErrorCode::not_found;
    co_return fail(code, std::move(captured.error().message));
  }
  std::string text = captured->out + "\n" + captured->err;
  if (!captured->status.clean()) {
    co_return fail(ErrorCode::not_found,
                   fmt::format("it does not run ({}; {})", captured->status.text(),
                               telling_lines(text, kReasonBytesMax)));
  }
  co_return text;
}

async::awaitable<Result<Executable>> Finder::learn(std::string path, std::stop_token stop) {
  auto version_text = co_await run(path, "--version", settings_.environment, stop);
  // An executable that ends well and prints nothing was seen once on a crowded machine, and never
  // when it was asked again.
  if (version_text && trim(*version_text).empty()) {
    log::warn("{} --version printed nothing; asking again", path);
    version_text = co_await run(path, "--version", settings_.environment, stop);
  }
  if (!version_text) co_return pass_on(version_text);
  Executable executable;
  executable.path = path;
  auto version = parse_version(*version_text);
  if (!version)
    co_return fail(ErrorCode::not_found, "it is not a llama-server: --version names none");
  executable.version = std::move(*version);
  auto help_text = co_await run(path, "--help", settings_.environment, stop);
  if (!help_text) co_return pass_on(help_text);
  executable.flags = parse_help_flags(*help_text);
  if (!executable.knows("--model") || !executable.knows("--host")) {
    co_return fail(ErrorCode::not_found,
                   "it is not a llama-server: --help shows neither --model nor --host");
  }
  co_return executable;
}

async::awaitable<Result<LoaderTrace>> Finder::list_devices(std::string path, std::string preload,
                                                           std::stop_token stop) {
  std::vector<std::string> environment =
      process::with_variable(settings_.environment, "LD_DEBUG", "libs");
  if (!preload.empty()) environment = preloading(std::move(environment), preload);
  auto output = co_await run(std::move(path), "--list-devices", std::move(environment), stop);
  if (!output) co_return pass_on(output);
  co_return read_loader_trace(*output);
}

// The library with which this executable, which waits with GNU's OpenMP, has been seen to load
// LLVM's; empty if there is none.
async::awaitable<std::string> Finder::openmp_to_preload(std::string path, std::stop_token stop) {
  if (!has_shared_memory()) co_return "";
  for (const std::string_view library : kLlvmOpenMp) {
    const auto told = co_await list_devices(path, std::string(library), stop);
    if (told && openmp_among(told->libraries) == OpenMp::llvm) co_return std::string(library);
  }
  co_return "";
}

async::awaitable<Result<Executable>> Finder::examine(std::string path, std::stop_token stop) {
  if (!cache_loaded_) co_await load_cache();
  const std::string whole = absolute(path);
  const auto identity = identity_of(whole);
  if (!identity) co_return fail(ErrorCode::not_found, "there is no such executable file");
  Known fresh;
  fresh.identity = *identity;
  bool learnt = false;
  if (const auto known = known_.find(whole);
      known != known_.end() && known->second.identity == *identity) {
    if (known->second.has_devices) co_return known->second.executable;
    fresh.executable = known->second.executable;
  } else {
    auto executable = co_await learn(whole, stop);
    if (!executable) co_return pass_on(executable);
    fresh.executable = std::move(*executable);
    learnt = true;
  }
  if (fresh.executable.knows("--list-devices")) {
    auto told = co_await list_devices(whole, "", stop);
    if (!told) co_return pass_on(told);
    fresh.executable.devices = parse_devices(told->rest);
    fresh.executable.openmp = openmp_among(told->libraries);
    if (fresh.executable.openmp == OpenMp::gnu) {
      fresh.executable.preload = co_await openmp_to_preload(whole, stop);
      if (!fresh.executable.preload.empty()) fresh.executable.openmp = OpenMp::llvm;
    }
  }
  fresh.has_devices = true;
  Executable result = fresh.executable;
  known_.insert_or_assign(whole, std::move(fresh));
  if (learnt) co_await save_cache();
  co_return result;
}

async::awaitable<void> Finder::load_cache() {
  const auto read = [file = cache_file()] { return read_probes(file); };
  CachedProbes probes = co_await offload_.run(read);
  cache_loaded_ = true;
  for (auto& [path, probe] : probes) {
    Known known;
    known.identity = probe.identity;
    known.executable = std::move(probe.executable);
    // What was learnt in the meantime is newer.
    known_.emplace(path, std::move(known));
  }
}

async::awaitable<void> Finder::save_cache() {
  CachedProbes probes;
  for (const auto& [path, known] : known_) {
    CachedProbe probe;
    probe.identity = known.identity;
    probe.executable = known.executable;
    probes.emplace(path, std::move(probe));
  }
  const auto write = [file = cache_file(), probes = std::move(probes)] {
    return write_probes(file, probes);
  };
  const Status written = co_await offload_.run(write);
  if (!written)
    log::debug("what llama-server said of itself is not kept: {}", written.error().message);
}

}  // namespace werk::engine::llama_server
