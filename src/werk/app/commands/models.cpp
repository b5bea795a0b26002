#include "werk/app/commands/models.hpp"

#include <fmt/format.h>

#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <cstdio>

#include "werk/app/node_client.hpp"
#include "werk/app/terminal.hpp"
#include "werk/base/text.hpp"
#include "werk/model/store.hpp"

namespace werk::app {

namespace json = boost::json;

namespace {

std::string parameters_text(std::uint64_t parameters) {
  if (parameters == 0) return "-";
  if (parameters >= 1'000'000'000)
    return fmt::format("{:.1f}B", static_cast<double>(parameters) / 1e9);
  return fmt::format("{:.0f}M", static_cast<double>(parameters) / 1e6);
}

std::string or_dash(const std::string& text) { return text.empty() ? "-" : text; }

// One that the running node serves from elsewhere.
struct FarModel {
  std::string id;
  std::string remote;
  std::string context;
};

std::vector<FarModel> far_models(const Settings& settings, const std::filesystem::path& home) {
  std::vector<FarModel> all;
  const auto node = home_node(settings, home);
  if (!node) return all;
  NodeRequest request;
  request.target = "/v1/models";
  request.silence_max = std::chrono::seconds(2);
  const Result<std::string> page = NodeClient(*node).ask(request);
  if (!page) {
    fmt::print(stderr, "werk: the node's list can't be had: {}\n", page.error().message);
    return all;
  }
  boost::system::error_code error;
  const json::value read = json::parse(*page, error);
  const json::value* data = error ? nullptr : read.find_pointer("/data", error);
  if (data == nullptr || !data->is_array()) return all;
  for (const json::value& one : data->get_array()) {
    boost::system::error_code absent;
    const json::value* remote = one.find_pointer("/meta/remote", absent);
    if (remote == nullptr || !remote->is_bool() || !remote->get_bool()) continue;
    const json::value* context = one.find_pointer("/meta/context", absent);
    all.push_back({printable(std::string_view(one.at("id").as_string())),
                   printable(std::string_view(one.at("owned_by").as_string())),
                   context != nullptr && context->is_number() ? json::serialize(*context) : "-"});
  }
  return all;
}

void print_table(const model::Listing& listing, const std::vector<FarModel>& far) {
  std::size_t width = 4;
  for (const FarModel& one : far) width = std::max(width, one.id.size());
  for (const auto& model : listing.models) width = std::max(width, model.manifest.id.size());
  fmt::print("{:<{}}  {:>8}  {:>6}  {:<8}  {:>8}  {}\n", "ID", width, "SIZE", "PARAMS", "QUANT",
             "CONTEXT", "ARCHITECTURE");
  for (const auto& model : listing.models) {
    const model::Manifest& one = model.manifest;
    fmt::print("{:<{}}  {:>8}  {:>6}  {:<8}  {:>8}  {}\n", one.id, width,
               readable_bytes(model::total_bytes(one)), parameters_text(one.parameters),
               or_dash(one.quantization), one.training_context_tokens, or_dash(one.architecture));
  }
  for (const FarModel& one : far) {
    fmt::print("{:<{}}  {:>8}  {:>6}  {:<8}  {:>8}  remote {}\n", one.id, width, "-", "-", "-",
               one.context, one.remote);
  }
}

}  // namespace

int list_command(const CommandLine& line, const Settings& settings,
                 const std::filesystem::path& home) {
  const auto listing = model::Store(home).list();
  if (!listing) return failed(listing.error());
  for (const auto& broken : listing->broken) {
    fmt::print(stderr, "werk: {} is unusable: {}\n", broken.id, broken.error.message);
  }
  // A model whose files are gone or changed is listed, and told before a call meets it.
  for (const auto& model : listing->models) {
    if (const Status whole = model::verify(model); !whole) {
      fmt::print(stderr, "werk: {}\n", whole.error().message);
    }
  }
  if (line.json == Json::yes) {
    json::array all;
    for (const auto& model : listing->models)
      all.push_back(json::parse(model::write_manifest(model.manifest)));
    fmt::print("{}\n", json::serialize(all));
    return 0;
  }
  const std::vector<FarModel> far = far_models(settings, home);
  if (listing->models.empty() && far.empty()) {
    fmt::print(
        "no model is installed; `werk pull smollm2` or `werk import FILE` brings one, and "
        "`werk import --scan` shows what other tools have\n");
    return 0;
  }
  print_table(*listing, far);
  return 0;
}

int inspect_command(const CommandLine& line, const std::filesystem::path& home) {
  const auto model = model::Store(home).find(line.subject);
  if (!model) return failed(model.error());
  fmt::print("{}", model::write_manifest(model->manifest));
  return 0;
}

}  // namespace werk::app
