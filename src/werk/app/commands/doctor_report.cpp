#include "werk/app/commands/doctor_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include "werk/app/terminal.hpp"

namespace werk::app {

namespace json = boost::json;

namespace {

constexpr std::size_t kColumns = 80;
constexpr std::string_view kIndent = "        ";

std::string_view mark_of(Finding finding) {
  switch (finding) {
    case Finding::good: return "ok";
    case Finding::note: return "note";
    case Finding::lack: return "LACK";
  }
  return "";
}

std::string_view colour_of(Finding finding) {
  switch (finding) {
    case Finding::good: return "\033[32m";
    case Finding::note: return "\033[33m";
    case Finding::lack: return "\033[31m";
  }
  return "";
}

class Page {
 public:
  explicit Page(Colours colours) : colours_(colours) {}

  void heading(std::string_view text) {
    text_ += fmt::format("{}{}\n", text_.empty() ? "" : "\n", text);
  }
  void item(Finding finding, std::string_view text) {
    const bool coloured = colours_ == Colours::yes;
    text_ += fmt::format("  {}{:<4}{}  ", coloured ? colour_of(finding) : "", mark_of(finding),
                         coloured ? "\033[0m" : "");
    wrap(text);
  }
  void more(std::string_view text) {
    text_ += kIndent;
    wrap(text);
  }
  void plain(std::string_view text) { text_.append(text).append("\n"); }
  std::string take() { return std::move(text_); }

 private:
  // From the indent on; a word that fits into no line stands alone.
  void wrap(std::string_view text) {
    std::size_t column = kIndent.size();
    const std::string shown = shown_text(text);
    std::string_view rest = shown;
    bool first = true;
    while (!rest.empty()) {
      const std::string_view word = rest.substr(0, rest.find(' '));
      rest.remove_prefix(std::min(word.size() + 1, rest.size()));
      if (!first && column + 1 + word.size() > kColumns) {
        text_.append("\n").append(kIndent);
        column = kIndent.size();
      } else if (!first) {
        text_ += ' ';
        ++column;
      }
      text_ += word;
      column += word.size();
      first = false;
    }
    text_ += '\n';
  }

  Colours colours_;
  std::string text_;
};

std::string words(const std::vector<std::string>& list) {
  return fmt::format("{}", fmt::join(list, ", "));
}

// One that isn't there is no lack: most machines need none.
void add_worker(Page& page, const WorkerFinding& worker) {
  if (!worker.problem.empty()) return page.item(Finding::note, worker.problem);
  page.item(Finding::good, fmt::format("{} {}, {}", worker.engine, worker.version, worker.kind));
  page.more(worker.path);
}

void add_engine(Page& page, const EngineFinding& engine) {
  if (!engine.problem.empty()) {
    page.item(Finding::lack, fmt::format("a llama-server {}: {}", engine.origin, engine.problem));
    page.more(engine.path);
    return;
  }
  page.item(Finding::good, fmt::format("llama-server {}, {}", engine.version, engine.origin));
  page.more(engine.path);
  page.more(engine.devices.empty() ? "no accelerator: it computes on the processor"
                                   : "devices: " + words(engine.devices));
  if (engine.devices.empty() && engine.threads_spin) {
    page.more("its threads spin while they wait, so each model gets a part of the cores");
    if (engine.openmp_helps) page.more("with LLVM's OpenMP (package libomp5) each would get all");
  }
  if (!engine.lacks.empty())
    page.more(fmt::format("it doesn't know {}; newer ones do", words(engine.lacks)));
}

void add_remote(Page& page, const RemoteFinding& remote) {
  if (remote.problem.empty()) {
    page.item(Finding::good, fmt::format("{} lists {} model(s)", remote.name, remote.models));
  } else {
    page.item(Finding::lack, remote.problem);
  }
  page.more(remote.url);
}

void add_model(Page& page, const ModelFinding& model) {
  if (model.engine.empty()) {
    page.item(Finding::lack, fmt::format("{}: {}", model.id, model.problem));
    return;
  }
  const bool whole = model.problem.empty();
  page.item(whole ? Finding::good : Finding::note,
            fmt::format("{}, by {}{}{}", model.id, model.engine, whole ? "" : "; ", model.problem));
}

json::array array_of(const std::vector<std::string>& list) {
  json::array all;
  for (const std::string& one : list) all.emplace_back(one);
  return all;
}

json::value or_null(const std::string& text) {
  return text.empty() ? json::value(nullptr) : json::value(text);
}

}  // namespace

std::string doctor_text(const DoctorReport& report, Colours colours) {
  Page page(colours);
  page.heading("Engines");
  if (report.engines.empty()) page.item(Finding::lack, "there is no llama-server");
  for (const EngineFinding& engine : report.engines) add_engine(page, engine);
  for (const WorkerFinding& worker : report.workers) add_worker(page, worker);
  if (!report.remotes.empty()) page.heading("Remotes");
  for (const RemoteFinding& remote : report.remotes) add_remote(page, remote);
  page.heading("Models");
  if (report.models.empty()) page.item(Finding::lack, "no model is installed");
  for (const ModelFinding& model : report.models) add_model(page, model);
  page.heading("This machine");
  for (const MachineFinding& one : report.machine)
    page.item(one.finding, fmt::format("{}: {}", one.topic, one.text));
  page.heading(report.can_serve ? "Models can be served." : "Nothing can be served.");
  if (!report.helpful.empty()) page.plain("What helps:");
  for (const std::string& command : report.helpful) page.plain("  " + command);
  return page.take();
}

std::string doctor_json(const DoctorReport& report) {
  json::array engines;
  for (const EngineFinding& one : report.engines) {
    engines.push_back({{"origin", one.origin},
                       {"path", one.path},
                       {"version", or_null(one.version)},
                       {"devices", array_of(one.devices)},
                       {"lacks", array_of(one.lacks)},
                       {"threads_spin", one.threads_spin},
                       {"problem", or_null(one.problem)}});
  }
  json::array workers;
  for (const WorkerFinding& one : report.workers) {
    workers.push_back({{"engine", one.engine},
                       {"path", or_null(one.path)},
                       {"version", or_null(one.version)},
                       {"problem", or_null(one.problem)}});
  }
  json::array remotes;
  for (const RemoteFinding& one : report.remotes) {
    remotes.push_back({{"name", one.name},
                       {"url", one.url},
                       {"models", one.models},
                       {"problem", or_null(one.problem)}});
  }
  json::array models;
  for (const ModelFinding& one : report.models) {
    models.push_back(
        {{"id", one.id}, {"engine", or_null(one.engine)}, {"problem", or_null(one.problem)}});
  }
  json::array machine;
  for (const MachineFinding& one : report.machine) {
    machine.push_back({{"topic", one.topic},
                       {"finding", one.finding == Finding::lack ? "lack" : mark_of(one.finding)},
                       {"text", one.text}});
  }
  json::object page;
  page["schema"] = 1;
  page["can_serve"] = report.can_serve;
  page["engines"] = std::move(engines);
  page["workers"] = std::move(workers);
  page["remotes"] = std::move(remotes);
  page["models"] = std::move(models);
  page["machine"] = std::move(machine);
  page["helpful"] = array_of(report.helpful);
  return json::serialize(page);
}

}  // namespace werk::app
