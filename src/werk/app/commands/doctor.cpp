#include "werk/app/commands/doctor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <iterator>

#include "werk/app/commands/doctor_machine.hpp"
#include "werk/app/engines.hpp"
#include "werk/app/terminal.hpp"
#include "werk/async/loop.hpp"
#include "werk/async/task_group.hpp"
#include "werk/base/log.hpp"
#include "werk/engine/llama_server/launch.hpp"
#include "werk/engine/llama_server/managed.hpp"
#include "werk/model/store.hpp"
#include "werk/process/program.hpp"
#include "werk/process/signals.hpp"

namespace werk::app {

namespace fs = std::filesystem;
namespace llama = engine::llama_server;

namespace {

struct Candidate {
  std::string origin;
  std::string path;  // or the name that was given
};

std::vector<Candidate> candidates(const Settings& settings, const fs::path& home) {
  std::vector<Candidate> all;
  const auto named = [&](const std::string& variable, const std::optional<std::string>& name) {
    if (name) all.push_back({"named by " + variable, *name});
  };
  for (const llama::Mode mode : llama::kModes) {
    named(llama::variable_of(mode), settings.executables.by_mode[static_cast<std::size_t>(mode)]);
  }
  named("WERK_LLAMA_SERVER", settings.executables.any_mode);
  const auto managed = llama::usable_managed(home, llama::this_processor().fingerprint());
  if (managed) all.push_back({"installed by Werk", managed->executable().string()});
  const std::string path = process::own_variable("PATH").value_or("");
  const auto in_path = process::find_program("llama-server", path);
  if (in_path) all.push_back({"in PATH", *in_path});
  return all;
}

struct Accelerator {
  std::string_view device_file;
  llama::Mode mode;
  std::string_view name;
};

constexpr std::array kAccelerators{Accelerator{"/dev/nvidia0", llama::Mode::cuda, "an NVIDIA card"},
                                   Accelerator{"/dev/kfd", llama::Mode::rocm, "an AMD card"}};

// The parts that looking at engines takes; destroyed in reverse.
class Doctor {
 public:
  Doctor(const Settings& settings, const fs::path& home, process::SocketFolder& sockets,
         const model::Listing& listing)
      : settings_(settings),
        home_(home),
        listing_(listing),
        clock_(loop_.executor()),
        children_(loop_.executor(), clock_),
        tasks_(loop_.executor()),
        finder_(children_, clock_, offload_, llama_finder_settings(settings, home)),
        engines_({loop_.executor(), clock_, offload_, children_, sockets}, settings, home) {}

  // No when a signal ended it.
  bool look_into(DoctorReport& report) {
    const process::SignalWatch signals(loop_.executor(), [this](int) { stop_.request_stop(); });
    tasks_.spawn(look(report));
    loop_.run_until([this] { return tasks_.running() == 0; });
    return !stop_.stop_requested();
  }

 private:
  async::awaitable<void> look(DoctorReport& report) {
    for (const Candidate& candidate : candidates(settings_, home_)) {
      EngineFinding finding = co_await examine(candidate);
      report.engines.push_back(std::move(finding));
    }
    note_accelerators(report);
    const Status prepared = co_await engines_.prepare(stop_.get_token());
    for (engine::worker::WorkerEngine* worker : engines_.workers()) {
      const auto found = co_await worker->look(stop_.get_token());
      WorkerFinding finding{worker->info().name, {}, {}, {}, "in a worker"};
      if (found) {
        finding.path = found->path;
        finding.version = found->package_version;
      } else {
        finding.problem = found.error().message;
      }
      report.workers.push_back(std::move(finding));
    }
    co_await look_at_vllm(report);
    co_await look_at_remotes(report);
    const std::string reason = prepared ? std::string() : prepared.error().message;
    const routing::Router router(engines_.in_order(), settings_.aliases, engines_.of_models(),
                                 engines_.missing());
    const routing::Catalogue catalogue(listing_.models);
    for (const model::InstalledModel& model : listing_.models) {
      const Status sound = model::verify(model);
      const auto route = router.route(catalogue, model.manifest.id);
      ModelFinding finding{model.manifest.id, {}, {}};
      if (!sound) {
        finding.problem = sound.error().message;
      } else if (!prepared || !route) {
        finding.problem = prepared ? route.error().message : reason;
      } else {
        finding.engine = route->engine->info().name;
        finding.problem = problem_of(report, finding.engine);
        if (finding.problem.empty()) report.can_serve = true;
      }
      report.models.push_back(std::move(finding));
    }
  }

  async::awaitable<void> look_at_remotes(DoctorReport& report) {
    for (engine::remote::RemoteEngine* remote : engines_.remotes()) {
      const Status looked = co_await remote->look(stop_.get_token());
      RemoteFinding finding{remote->settings().name, remote->settings().url.text(), 0, {}};
      finding.models = remote->listing().models.size();
      if (!looked) finding.problem = looked.error().message;
      if (looked && finding.models > 0) report.can_serve = true;
      report.remotes.push_back(std::move(finding));
    }
  }

  // Only where there is one, or was to be.
  async::awaitable<void> look_at_vllm(DoctorReport& report) {
    WorkerFinding finding{std::string(engine::vllm::kEngineName),
                          {},
                          {},
                          engines_.vllm_problem(),
                          "a server of its own for each model"};
    if (engine::vllm::VllmEngine* vllm = engines_.vllm()) {
      const auto found = co_await vllm->look(stop_.get_token());
      if (found) {
        finding.path = found->program;
        finding.version = found->version.empty() ? "of unknown version" : found->version;
      } else {
        finding.problem = found.error().message;
      }
    }
    const bool is_of_interest = !finding.path.empty() || !finding.problem.empty();
    if (is_of_interest) report.workers.push_back(std::move(finding));
  }

  // What keeps a worker from serving a model that it would be chosen for.
  static std::string problem_of(const DoctorReport& report, const std::string& engine) {
    const auto worker = std::ranges::find(report.workers, engine, &WorkerFinding::engine);
    return worker == report.workers.end() ? std::string() : worker->problem;
  }

  async::awaitable<EngineFinding> examine(Candidate candidate) {
    EngineFinding finding{candidate.origin, candidate.path};
    const auto path =
        process::find_program(candidate.path, process::own_variable("PATH").value_or(""));
    if (!path) {
      finding.problem = "there is no such executable file";
      co_return finding;
    }
    const auto found = co_await finder_.examine(*path, stop_.get_token());
    if (!found) {
      finding.problem = found.error().message;
      co_return finding;
    }
    finding.path = found->path;
    finding.version = found->version.text();
    for (const llama::Device& device : found->devices) {
      finding.devices.push_back(fmt::format("{} ({})", device.name, device.description));
      if (const auto mode = llama::mode_of_device(device.name)) reached_.push_back(*mode);
    }
    finding.threads_spin = found->openmp != llama::OpenMp::llvm;
    finding.openmp_helps = found->openmp == llama::OpenMp::gnu;
    for (const std::string_view flag : llama::missing_flags(*found))
      finding.lacks.emplace_back(flag);
    co_return finding;
  }

  void note_accelerators(DoctorReport& report) const {
    for (const Accelerator& one : kAccelerators) {
      std::error_code error;
      const bool here = fs::exists(one.device_file, error);
      if (!here || std::ranges::find(reached_, one.mode) != reached_.end()) continue;
      report.machine.push_back(
          {"accelerator", Finding::note,
           fmt::format("{} is here, and no llama-server that can use it; name one in {}", one.name,
                       llama::variable_of(one.mode))});
    }
  }

  const Settings& settings_;
  const fs::path& home_;
  const model::Listing& listing_;
  async::Loop loop_;
  async::SteadyClock clock_;
  async::Offload offload_;
  process::Children children_;
  async::TaskGroup tasks_;
  std::stop_source stop_;
  llama::Finder finder_;
  Engines engines_;
  std::vector<llama::Mode> reached_;  // by devices of any engine
};

void add_help(DoctorReport& report, const model::Listing& listing) {
  const bool has_engine = std::ranges::any_of(
      report.engines, [](const EngineFinding& one) { return one.problem.empty(); });
  if (!has_engine) report.helpful.emplace_back("werk engine install llama-server");
  if (listing.models.empty()) {
    report.helpful.emplace_back("werk pull smollm2");
    report.helpful.emplace_back("werk import FILE --name ID");
  }
  for (const model::BrokenModel& broken : listing.broken)
    report.helpful.push_back("werk remove " + broken.id);
  if (report.can_serve && report.helpful.empty()) {
    report.helpful.push_back("werk run " + report.models.front().id + " \"Hello\"");
    report.helpful.emplace_back("werk serve");
  }
}

}  // namespace

int doctor_command(const CommandLine& line, const Settings& settings, const fs::path& home) {
  log::set_level(log::Level::off);  // what it passes over is in the report
  DoctorReport report;
  const auto listing = model::Store(home).list();
  if (!listing) return failed(listing.error());
  auto sockets = process::SocketFolder::create(process::own_variable);
  if (sockets) {
    Doctor doctor(settings, home, *sockets, *listing);
    if (!doctor.look_into(report)) return kSignalStatus;
  }
  std::uint64_t largest = 0;
  for (const model::InstalledModel& model : listing->models)
    largest = std::max(largest, model::total_bytes(model.manifest));
  for (const model::BrokenModel& broken : listing->broken)
    report.models.push_back({broken.id, {}, broken.error.message});
  std::ranges::move(look_at_machine(settings, home, sockets, largest),
                    std::back_inserter(report.machine));
  for (const std::string& warning : settings.warnings)
    report.machine.push_back({"settings", Finding::note, warning});
  add_help(report, *listing);
  const Colours colours = can_colour(1) ? Colours::yes : Colours::no;
  fmt::print("{}",
             line.json == Json::yes ? doctor_json(report) + "\n" : doctor_text(report, colours));
  return report.can_serve ? 0 : 1;
}

}  // namespace werk::app
