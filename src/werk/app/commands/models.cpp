#include "werk/app/commands/models.hpp"

#include <fmt/format.h>

#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <cstdio>

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

void print_table(const model::Listing& listing) {
  std::size_t width = 4;
  for (const auto& model : listing.models) width = std::max(width, model.manifest.id.size());
  fmt::print("{:<{}}  {:>8}  {:>6}  {:<8}  {:>8}  {}\n", "ID", width, "SIZE", "PARAMS", "QUANT",
             "CONTEXT", "ARCHITECTURE");
  for (const auto& model : listing.models) {
    const model::Manifest& one = model.manifest;
    fmt::print("{:<{}}  {:>8}  {:>6}  {:<8}  {:>8}  {}\n", one.id, width,
               readable_bytes(model::total_bytes(one)), parameters_text(one.parameters),
               or_dash(one.quantization), one.training_context_tokens, or_dash(one.architecture));
  }
}

}  // namespace

int list_command(const CommandLine& line, const std::filesystem::path& home) {
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
  if (listing->models.empty()) {
    fmt::print(
        "no model is installed; `werk pull smollm2` or `werk import FILE` brings one, and "
        "`werk import --scan` shows what other tools have\n");
    return 0;
  }
  print_table(*listing);
  return 0;
}

int inspect_command(const CommandLine& line, const std::filesystem::path& home) {
  const auto model = model::Store(home).find(line.subject);
  if (!model) return failed(model.error());
  fmt::print("{}", model::write_manifest(model->manifest));
  return 0;
}

}  // namespace werk::app
