#include "werk/engine/worker/messages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "werk/base/base64.hpp"
#include "werk/base/text.hpp"

namespace werk::engine::worker {

namespace json = boost::json;

namespace {

constexpr std::size_t kDepthMax = 128;
constexpr std::size_t kTextBytesMax = 4096;  // of a message for people
constexpr std::size_t kAbilitiesMax = 64;

Error broken(std::string_view rule) {
  return {ErrorCode::engine_failed, fmt::format("the worker broke its protocol: {}", rule),
          Origin::engine};
}

// Reads members one after the other and remembers the first that is wrong.
class Members {
 public:
  Members(const json::object& object, std::string_view type) : object_(object), type_(type) {}

  std::uint64_t number(std::string_view name) {
    const json::value* value = object_.if_contains(name);
    if (value != nullptr && value->is_int64() && value->get_int64() >= 0)
      return static_cast<std::uint64_t>(value->get_int64());
    if (value != nullptr && value->is_uint64()) return value->get_uint64();
    complain(name, "a whole number from 0");
    return 0;
  }
  std::uint64_t number_or(std::string_view name, std::uint64_t otherwise) {
    return object_.contains(name) ? number(name) : otherwise;
  }
  std::string text(std::string_view name) {
    const json::value* value = object_.if_contains(name);
    if (value != nullptr && value->is_string()) return std::string(value->get_string());
    complain(name, "a text");
    return {};
  }
  std::optional<double> fraction(std::string_view name) {
    const json::value* value = object_.if_contains(name);
    if (value == nullptr || value->is_null()) return std::nullopt;
    const bool is_number = value->is_number();
    const double read = is_number ? value->to_number<double>() : -1;
    if (read >= 0 && read <= 1) return read;
    complain(name, "a number from 0 to 1");
    return std::nullopt;
  }
  bool truth(const json::object& object, std::string_view name, bool otherwise) {
    const json::value* value = object.if_contains(name);
    if (value == nullptr) return otherwise;
    if (!value->is_bool()) complain(name, "true or false");
    return value->is_bool() ? value->get_bool() : otherwise;
  }
  const json::object* object(std::string_view name) {
    const json::value* value = object_.if_contains(name);
    if (value != nullptr && value->is_object()) return &value->get_object();
    if (value != nullptr) complain(name, "an object");
    return nullptr;
  }
  std::vector<std::string> texts(std::string_view name) {
    const json::value* value = object_.if_contains(name);
    std::vector<std::string> all;
    const bool sound = value != nullptr && value->is_array() &&
                       value->get_array().size() <= kAbilitiesMax &&
                       std::ranges::all_of(value->get_array(), &json::value::is_string);
    if (!sound) {
      complain(name, "a list of texts");
      return all;
    }
    for (const json::value& one : value->get_array()) all.emplace_back(one.get_string());
    return all;
  }
  bool has(std::string_view name) const { return object_.contains(name); }
  void complain(std::string_view name, std::string_view wanted) {
    if (!complaint_)
      complaint_ = broken(fmt::format("\"{}\" of {} is not {}", name, type_, wanted));
  }

  Result<FromWorker> or_complaint(FromWorker message) const {
    if (complaint_) return fail(*complaint_);
    return message;
  }

 private:
  const json::object& object_;
  std::string_view type_;
  std::optional<Error> complaint_;
};

FromWorker hello(Members& members) {
  return Hello{members.number("protocol"), members.text("engine"), members.text("engine_version"),
               members.texts("can")};
}

FromWorker progress(Members& members) {
  return Progress{members.number("id"), members.text("what"), members.fraction("fraction")};
}

FromWorker loaded(Members& members) {
  Loaded loaded{members.number("id"), members.number("context")};
  if (const json::object* shape = members.object("template")) {
    loaded.takes_tools = members.truth(*shape, "tools", false);
    loaded.takes_later_system = members.truth(*shape, "later_system", true);
  }
  return loaded;
}

FromWorker unloaded(Members& members) { return Unloaded{members.number("id")}; }

FromWorker started(Members& members) {
  return GenerationStarted{members.number("id"), members.number("prompt_tokens"),
                           members.number("cached_tokens")};
}

FromWorker token(Members& members) {
  TokenEvent token{members.number("id"), {}, members.number_or("tokens", 1)};
  if (members.has("text") == members.has("bytes")) {
    members.complain("text", "there, or else \"bytes\"");
  } else if (members.has("text")) {
    token.bytes = members.text("text");
  } else {
    auto bytes = decode_base64(members.text("bytes"));
    if (!bytes) members.complain("bytes", "base64");
    if (bytes) token.bytes = std::move(*bytes);
  }
  return token;
}

FromWorker finished(Members& members) {
  static constexpr std::array<std::string_view, 4> kReasons = {"stop", "length", "context",
                                                               "cancelled"};
  GenerationFinished finished;
  finished.id = members.number("id");
  const std::string reason = members.text("reason");
  const auto* known = std::ranges::find(kReasons, reason);
  if (known == kReasons.end()) {
    members.complain("reason", "stop, length, context or cancelled");
  } else {
    finished.reason = static_cast<EndReason>(known - kReasons.begin());
  }
  finished.usage = {members.number("prompt_tokens"), members.number("cached_tokens"),
                    members.number("completion_tokens")};
  return finished;
}

FromWorker counted(Members& members) {
  return Counted{members.number("id"), members.number("tokens")};
}

FromWorker pong(Members& members) { return Pong{members.number("id")}; }

ErrorCode code_named(std::string_view name) {
  if (name == "model_unusable") return ErrorCode::model_unusable;
  if (name == "invalid_request") return ErrorCode::invalid_request;
  if (name == "context_length_exceeded") return ErrorCode::context_length_exceeded;
  if (name == "device_missing") return ErrorCode::model_unusable;
  if (name == "out_of_memory") return ErrorCode::start_failed;
  return ErrorCode::engine_failed;
}

FromWorker failed(Members& members) {
  Failed failed;
  failed.id = members.number("id");
  const std::string code = members.text("code");
  failed.error = {code_named(code), printable(members.text("message").substr(0, kTextBytesMax)),
                  Origin::engine};
  if (failed.error.code == ErrorCode::context_length_exceeded) {
    failed.error.overflow =
        TokenOverflow{members.number("prompt_tokens"), members.number("context")};
  }
  return failed;
}

FromWorker fault(Members& members) {
  return Fault{printable(members.text("message").substr(0, kTextBytesMax))};
}

struct Kind {
  std::string_view type;
  FromWorker (*read)(Members&);
};
constexpr std::array<Kind, 11> kKinds = {{{"hello", hello},
                                          {"progress", progress},
                                          {"loaded", loaded},
                                          {"unloaded", unloaded},
                                          {"started", started},
                                          {"token", token},
                                          {"finished", finished},
                                          {"counted", counted},
                                          {"pong", pong},
                                          {"failed", failed},
                                          {"fault", fault}}};

json::object message(std::string_view type, RequestId id) {
  json::object object;
  object["type"] = type;
  object["id"] = id;
  return object;
}

}  // namespace

Result<FromWorker> read_message(std::string_view text) {
  json::parse_options options;
  options.max_depth = kDepthMax;
  boost::system::error_code error;
  const json::value value = json::parse(text, error, {}, options);
  if (error) return fail(broken("a frame is not JSON: " + error.message()));
  if (!value.is_object()) return fail(broken("a frame holds no object"));
  const json::value* type = value.get_object().if_contains("type");
  if (type == nullptr || !type->is_string()) return fail(broken("a message has no type"));
  const std::string_view name(type->get_string());
  const auto* kind = std::ranges::find(kKinds, name, &Kind::type);
  if (kind == kKinds.end()) {
    constexpr std::size_t kShownBytes = 40;
    return fail(
        broken(fmt::format("there is no message \"{}\"", printable(name.substr(0, kShownBytes)))));
  }
  Members members(value.get_object(), kind->type);
  FromWorker read = kind->read(members);
  return members.or_complaint(std::move(read));
}

std::string load_message(RequestId id, const std::string& folder, const LoadOptions& options) {
  json::object object = message("load", id);
  object["folder"] = folder;
  json::object chosen;
  if (!options.device.empty()) chosen["device"] = options.device;
  if (!options.dtype.empty()) chosen["dtype"] = options.dtype;
  if (options.threads) chosen["threads"] = *options.threads;
  if (options.context_tokens > 0) chosen["context"] = options.context_tokens;
  object["options"] = std::move(chosen);
  return json::serialize(object);
}

std::string unload_message(RequestId id) { return json::serialize(message("unload", id)); }

std::string cancel_message(RequestId id) { return json::serialize(message("cancel", id)); }

std::string stop_message() { return R"({"type":"stop"})"; }

}  // namespace werk::engine::worker
