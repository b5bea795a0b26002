#include "werk/app/commands/remove.hpp"

#include <fmt/format.h>

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <cstdio>
#include <vector>

#include "werk/app/node_client.hpp"
#include "werk/app/terminal.hpp"
#include "werk/base/text.hpp"
#include "werk/model/store.hpp"

namespace werk::app {
namespace {

namespace json = boost::json;

constexpr std::chrono::seconds kSilenceMax{10};

std::string text_at(const json::value& value, std::string_view pointer) {
  boost::system::error_code error;
  const json::value* found = value.find_pointer(pointer, error);
  return found && found->is_string() ? std::string(found->get_string()) : std::string();
}

std::uint64_t number_at(const json::value& value, std::string_view pointer) {
  boost::system::error_code error;
  const json::value* found = value.find_pointer(pointer, error);
  if (!found || !found->is_number()) return 0;
  const auto number = found->to_number<std::uint64_t>(error);
  return error ? 0 : number;
}

// A runtime's key is ENGINE/BEGINNING OF THE IDENTITY/OPTIONS.
bool is_of(const std::string& key, std::string_view identity) {
  const std::size_t first = key.find('/');
  if (first == std::string::npos) return false;
  const std::size_t end = key.find('/', first + 1);
  const std::string part = key.substr(first + 1, end - first - 1);
  return !part.empty() && identity.starts_with(part);
}

std::string as_word(const std::string& id) { return shell_line(std::vector<std::string>{id}); }

// Fails where the home's node holds the model, or where it can't be asked.
Status check_free(const std::string& id, const Settings& settings,
                  const std::filesystem::path& home) {
  const auto model = model::Store(home).find(id);
  // What is broken or isn't there is nobody's.
  if (!model || model->manifest.id != id) return {};
  const auto node = home_node(settings, home);
  if (!node) return {};
  NodeRequest request;
  request.target = "/werk/v1/observability";
  request.silence_max = kSilenceMax;
  const auto page = NodeClient(*node).ask(request);
  Result<std::optional<std::string>> held =
      page ? held_as(*page, model::identity_of(model->manifest)) : fail(page.error());
  if (!held) {
    return fail(
        held.error().code,
        fmt::format("{} is not removed, since the node of this home does not say whether it "
                    "holds it: {}",
                    id, held.error().message));
  }
  if (!*held) return {};
  return fail(ErrorCode::conflict,
              fmt::format("{} is not removed: the node at {} holds it ({}). Let it go first: "
                          "werk unload {}",
                          id, node->url, **held, as_word(id)));
}

}  // namespace

Result<std::optional<std::string>> held_as(std::string_view page, std::string_view identity) {
  boost::system::error_code error;
  const json::value value = json::parse(page, error);
  const json::value* runtimes = error ? nullptr : value.find_pointer("/runtimes", error);
  if (!runtimes || !runtimes->is_array()) {
    return fail(ErrorCode::internal, "its answer is not understood; is it another version?");
  }
  for (const json::value& runtime : runtimes->get_array()) {
    if (!is_of(text_at(runtime, "/key"), identity)) continue;
    const std::string state = text_at(runtime, "/state");
    const std::uint64_t calls = number_at(runtime, "/slots/busy") + number_at(runtime, "/waiting");
    if (calls == 0 && (state == "stopping" || state == "absent")) continue;
    return fmt::format("{}, {} call{}", printable(state), calls, calls == 1 ? "" : "s");
  }
  return std::nullopt;
}

int remove_command(const CommandLine& line, const Settings& settings,
                   const std::filesystem::path& home) {
  Status removed = check_free(line.subject, settings, home);
  if (removed) removed = model::Store(home).remove(line.subject);
  if (!removed) return failed(removed.error());
  fmt::print("{} is removed\n", line.subject);
  return 0;
}

}  // namespace werk::app
