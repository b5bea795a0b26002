#include "werk/app/commands/import_scan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <cstdio>
#include <set>
#include <utility>

#include "werk/app/commands/import.hpp"
#include "werk/base/text.hpp"
#include "werk/model/already_installed.hpp"
#include "werk/model/model_id.hpp"
#include "werk/model/model_name.hpp"
#include "werk/model/tool_models.hpp"

namespace werk::app {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

// A model of another tool beside what is installed here.
struct Offer {
  model::ToolModel model;
  std::string id;                        // it has or would get
  std::optional<std::string> installed;  // the id of the installed model that it is
};

std::uint64_t bytes_of(const model::ImportPlan& plan) {
  std::uint64_t bytes = 0;
  for (const model::PlannedFile& file : plan.files) bytes += file.size_bytes;
  return bytes;
}

std::optional<fs::path> projector_of(const model::ImportPlan& plan) {
  for (const model::PlannedFile& file : plan.files) {
    if (file.role == model::FileRole::projector) return file.path;
  }
  return std::nullopt;
}

// "LM Studio" as the first part of an id: "lm-studio".
std::string as_prefix(std::string_view tool) {
  std::string prefix = to_lower(tool);
  std::replace(prefix.begin(), prefix.end(), ' ', '-');
  return prefix;
}

class Offers {
 public:
  explicit Offers(std::vector<model::InstalledModel> installed)
      : installed_(std::move(installed)), digests_(model::manifests_of(installed_)) {}

  Offer make(model::ToolModel model) {
    Offer offer;
    offer.id = model::tidied_model_id(model.name);
    if (model.plan) {
      offer.installed = model::installed_already(*model.plan, installed_, digests_);
      offer.id = offer.installed ? *offer.installed
                                 : free_id(offer.id, as_prefix(model.tool), taken_, installed_);
      taken_.insert(offer.id);
    }
    offer.model = std::move(model);
    return offer;
  }

  // The aliases that are still free; they aren't any more.
  std::vector<std::string> claim_aliases(const Offer& offer) {
    std::vector<std::string> claimed;
    for (const std::string& alias : offer.model.aliases) {
      if (!model::check_model_id(alias) || model::is_taken(alias, installed_)) continue;
      if (taken_.insert(alias).second) claimed.push_back(alias);
    }
    return claimed;
  }

 private:
  static std::string free_id(const std::string& id, const std::string& prefix,
                             const std::set<std::string>& taken,
                             const std::vector<model::InstalledModel>& installed) {
    std::string wanted = app::free_id(id, prefix, installed);
    for (std::size_t number = 2; taken.contains(wanted); ++number) {
      wanted = app::free_id(fmt::format("{}-{}", id, number), prefix, installed);
    }
    return wanted;
  }

  std::vector<model::InstalledModel> installed_;
  model::KnownDigests digests_;
  std::set<std::string> taken_;  // by offers
};

bool is_called(const Offer& offer, const std::string& name) {
  const auto& aliases = offer.model.aliases;
  return offer.id == name || offer.model.name == name ||
         std::find(aliases.begin(), aliases.end(), name) != aliases.end();
}

json::value or_null(const std::string& text) {
  return text.empty() ? json::value(nullptr) : json::value(text);
}

json::object as_json(const Offer& offer) {
  const model::ToolModel& model = offer.model;
  json::object object;
  object["tool"] = model.tool;
  object["name"] = model.name;
  object["aliases"] = json::array(model.aliases.begin(), model.aliases.end());
  object["path"] = printable(model.path.string());
  object["projector"] = nullptr;
  object["size_bytes"] = nullptr;
  object["quantization"] = nullptr;
  if (model.plan) {
    const auto projector = projector_of(*model.plan);
    if (projector) object["projector"] = printable(projector->string());
    object["size_bytes"] = bytes_of(*model.plan);
    object["quantization"] = or_null(model.plan->weights.quantization);
  }
  object["id"] = model.plan ? json::value(offer.id) : json::value(nullptr);
  object["installed"] = offer.installed.has_value();
  object["unusable"] = or_null(printable(model.unusable));
  return object;
}

std::string status_of(const Offer& offer) {
  if (!offer.model.plan) return "unusable";
  if (offer.installed) {
    return offer.id == offer.model.name ? "installed" : "installed as " + offer.id;
  }
  return offer.id == offer.model.name ? "new" : "new, as " + offer.id;
}

void print_table(const std::vector<Offer>& offers) {
  std::size_t width = 4;
  for (const Offer& offer : offers) width = std::max(width, offer.model.name.size());
  fmt::print("{:<12}  {:<{}}  {:>8}  {:<8}  {}\n", "WHERE", "NAME", width, "SIZE", "QUANT",
             "STATUS");
  for (const Offer& offer : offers) {
    const auto& plan = offer.model.plan;
    fmt::print("{:<12}  {:<{}}  {:>8}  {:<8}  {}\n", offer.model.tool, offer.model.name, width,
               plan ? readable_bytes(bytes_of(*plan)) : "-",
               plan && !plan->weights.quantization.empty() ? plan->weights.quantization : "-",
               status_of(offer));
  }
}

void list(const std::vector<Offer>& offers, Json as) {
  if (as == Json::yes) {
    json::array all;
    for (const Offer& offer : offers) all.push_back(as_json(offer));
    fmt::print("{}\n", json::serialize(all));
    return;
  }
  print_table(offers);
  const char* before = "\n";
  for (const Offer& offer : offers) {
    if (offer.model.plan) continue;
    fmt::print("{}{} of {}: {}\n", std::exchange(before, ""), offer.model.name, offer.model.tool,
               printable(offer.model.unusable));
  }
  const bool any = std::any_of(offers.begin(), offers.end(), [](const Offer& offer) {
    return offer.model.plan && !offer.installed;
  });
  if (any) fmt::print("\n`werk import --scan --link [NAME...]` registers them where they lie.\n");
}

void register_all(const std::vector<Offer>& offers, Offers& names, ImportRun& run) {
  for (const Offer& offer : offers) {
    if (run.is_interrupted()) return;
    const std::string what = fmt::format("{} of {}", offer.model.name, offer.model.tool);
    if (!offer.model.plan) {
      run.tell_skipped(what, printable(offer.model.unusable));
      continue;
    }
    if (offer.installed) {
      run.tell_already(offer.id, what);
      continue;
    }
    model::ImportRequest request;
    request.path = offer.model.path;
    request.id = offer.id;
    request.aliases = names.claim_aliases(offer);
    request.mode = model::ImportMode::link;
    request.source = fmt::format("{}: {}", offer.model.tool, offer.model.name);
    request.projector_rule = model::ProjectorRule::none;
    request.projector = projector_of(*offer.model.plan);
    run.take(request);
  }
}

// Leaves the named ones; false, with a message for each, if a name is nobody's.
bool keep_named(std::vector<Offer>& offers, const std::vector<std::string>& wanted) {
  if (wanted.empty()) return true;
  bool all_known = true;
  for (const std::string& name : wanted) {
    if (std::any_of(offers.begin(), offers.end(),
                    [&](const Offer& offer) { return is_called(offer, name); })) {
      continue;
    }
    all_known = false;
    std::vector<std::string> known;
    for (const Offer& offer : offers) known.push_back(offer.model.name);
    const auto near = near_names(name, known);
    fmt::print(stderr, "werk: no tool here has a model '{}'{}\n", printable(name),
               near.empty() ? "; `werk import --scan` lists what there is"
                            : fmt::format("; did you mean {}?", fmt::join(near, ", ")));
  }
  std::erase_if(offers, [&](const Offer& offer) {
    return std::none_of(wanted.begin(), wanted.end(),
                        [&](const std::string& name) { return is_called(offer, name); });
  });
  return all_known;
}

}  // namespace

int import_scan_command(const CommandLine& line, const model::Environment& environment,
                        const fs::path& home) {
  ImportRun run(home);
  auto listing = run.store().list();
  if (!listing) {
    run.tell_failure(listing.error().message);
    return 1;
  }
  model::ToolScan scan = model::scan_tools(model::tool_folders(environment));
  for (const std::string& note : scan.notes) fmt::print(stderr, "werk: {}\n", printable(note));
  Offers names(std::move(listing->models));
  std::vector<Offer> offers;
  for (model::ToolModel& model : scan.models) offers.push_back(names.make(std::move(model)));
  if (!keep_named(offers, line.words)) return 1;
  if (offers.empty() && line.json == Json::no) {
    fmt::print(
        "neither Ollama, LM Studio, the Hugging Face hub nor llama.cpp keeps a model here\n");
    return 0;
  }
  if (!line.link) {
    list(offers, line.json);
    return 0;
  }
  register_all(offers, names, run);
  return run.finish(ImportRun::Summary::yes);
}

}  // namespace werk::app
