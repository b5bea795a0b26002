#include "werk/engine/remote/pages.hpp"

#include <algorithm>
#include <boost/json.hpp>
#include <set>

#include "werk/base/text.hpp"

namespace werk::engine::remote {
namespace {

namespace json = boost::json;

constexpr std::size_t kIdBytesMax = 256;
constexpr std::size_t kDepthMax = 32;

tl::unexpected<Error> unreadable(std::string message) {
  return fail(ErrorCode::engine_failed, Origin::engine, std::move(message));
}

std::optional<json::value> parse(std::string_view body) {
  json::parse_options options;
  options.max_depth = kDepthMax;
  boost::system::error_code error;
  json::value value = json::parse(body, error, {}, options);
  if (error) return std::nullopt;
  return value;
}

const json::value* member(const json::value& value, std::string_view key) {
  const json::object* object = value.if_object();
  return object == nullptr ? nullptr : object->if_contains(key);
}

const json::array* array_at(const json::value& value, std::string_view key) {
  const json::value* found = member(value, key);
  return found == nullptr ? nullptr : found->if_array();
}

std::string_view text_at(const json::value& value, std::string_view key) {
  const json::value* found = member(value, key);
  return found != nullptr && found->is_string() ? std::string_view(found->get_string())
                                                : std::string_view();
}

std::optional<std::uint64_t> number_at(const json::value& value, std::string_view key) {
  const json::value* found = member(value, key);
  if (found == nullptr) return std::nullopt;
  boost::system::error_code error;
  const auto number = found->to_number<std::uint64_t>(error);
  if (error) return std::nullopt;
  return number;
}

// What the context is called where: vLLM's, OpenRouter's and Groq's names, llama-server's within
// meta.
std::uint64_t context_of(const json::value& entry) {
  for (const std::string_view name : {"max_model_len", "context_length", "context_window"}) {
    if (const auto tokens = number_at(entry, name)) return *tokens;
  }
  const json::value* meta = member(entry, "meta");
  return meta == nullptr ? 0 : number_at(*meta, "n_ctx").value_or(0);
}

bool is_elsewhere(const json::value& entry) {
  const json::value* meta = member(entry, "meta");
  const json::value* remote = meta == nullptr ? nullptr : member(*meta, "remote");
  return remote != nullptr && remote->is_bool() && remote->get_bool();
}

bool is_usable(std::string_view id) {
  return !id.empty() && id.size() <= kIdBytesMax && is_valid_utf8(id) &&
         std::ranges::none_of(id, [](char c) { return static_cast<unsigned char>(c) < ' '; });
}

std::optional<PeerModel> read_entry(const json::value& entry) {
  const std::string_view id = text_at(entry, "id");
  if (!is_usable(id)) return std::nullopt;
  PeerModel model;
  model.id = std::string(id);
  model.owned_by = std::string(text_at(entry, "owned_by"));
  model.context_tokens = context_of(entry);
  model.created = static_cast<std::int64_t>(number_at(entry, "created").value_or(0));
  if (is_elsewhere(entry)) model.place = PeerModel::Place::elsewhere;
  return model;
}

}  // namespace

Result<std::vector<PeerModel>> read_models_page(std::string_view body) {
  const auto page = parse(body);
  // Some answer with the bare list.
  const json::array* data = !page              ? nullptr
                            : page->is_array() ? page->if_array()
                                               : array_at(*page, "data");
  if (data == nullptr) return unreadable("its list of models can't be read");
  std::vector<PeerModel> models;
  std::set<std::string> ids;
  for (const json::value& entry : *data) {
    if (models.size() == kModelsMax) break;
    auto model = read_entry(entry);
    if (model && ids.insert(model->id).second) models.push_back(std::move(*model));
  }
  return models;
}

Result<std::optional<NativeSlots>> read_observability(std::string_view body,
                                                      std::string_view model) {
  const auto page = parse(body);
  const json::array* runtimes = page ? array_at(*page, "runtimes") : nullptr;
  if (runtimes == nullptr || member(*page, "schema") == nullptr)
    return unreadable("its observability can't be read");
  std::optional<NativeSlots> sum;
  for (const json::value& runtime : *runtimes) {
    if (text_at(runtime, "model") != model || text_at(runtime, "state") != "ready") continue;
    const json::value* slots = member(runtime, "slots");
    const auto total = slots == nullptr ? std::nullopt : number_at(*slots, "total");
    if (!total) continue;
    if (!sum) sum.emplace();
    sum->total += static_cast<std::size_t>(*total);
    sum->busy += static_cast<std::size_t>(number_at(*slots, "busy").value_or(0));
  }
  return sum;
}

}  // namespace werk::engine::remote
