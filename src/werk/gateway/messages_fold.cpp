#include "werk/gateway/messages_fold.hpp"

#include <fmt/format.h>

#include "werk/base/json_cursor.hpp"
#include "werk/gateway/messages_stream.hpp"

namespace werk::gateway {
namespace {

bool is_object(std::string_view text) {
  JsonScanner scanner(JsonScanLimits{.notes = JsonNotes::nothing});
  return scanner.feed(text) && scanner.finish() && scanner.root() == JsonKind::object;
}

}  // namespace

void MessagesFold::Collector::open(const BlockHead& head) {
  head_ = head;
  text_.clear();
}

void MessagesFold::Collector::close() {
  if (!content_.empty()) content_.push_back(',');
  switch (head_.kind) {
    case BlockKind::thinking:
      content_ += R"({"type":"thinking","thinking":)";
      append_json_string(content_, text_);
      content_ += fmt::format(R"(,"signature":"{}"}})", kThinkingSignature);
      break;
    case BlockKind::text:
      content_ += R"({"type":"text","text":)";
      append_json_string(content_, text_);
      content_.push_back('}');
      break;
    case BlockKind::tool_use:
      content_ += R"({"type":"tool_use","id":)";
      append_json_string(content_, head_.id);
      content_ += R"(,"name":)";
      append_json_string(content_, head_.name);
      content_ += R"(,"input":)";
      content_ += is_object(text_) ? trim_json(text_) : "{}";
      content_.push_back('}');
      break;
  }
  text_.clear();
}

MessagesFold::MessagesFold(MessagesFoldOptions options)
    : message_id_(std::move(options.message_id)),
      client_model_(std::move(options.client_model)),
      bytes_max_(options.bytes_max),
      blocks_(std::move(options.blocks), collector_) {}

Status MessagesFold::event(const chat::GenerationEvent& event) {
  if (Status status = blocks_.event(event); !status) return status;
  if (collector_.size() <= bytes_max_) return {};
  blocks_.abandon();
  return fail(ErrorCode::engine_failed, Origin::engine,
              fmt::format("the engine's answer is longer than {} bytes", bytes_max_));
}

Result<std::string> MessagesFold::finish() const {
  const auto& end = collector_.last();
  if (!end) {
    return fail(ErrorCode::engine_failed, Origin::engine,
                "the engine's stream ended in the middle of the answer");
  }
  return fmt::format(R"({{"id":{},"type":"message","role":"assistant","model":{},"content":[{}],)"
                     R"("stop_reason":"{}","stop_sequence":{},"usage":{}}})",
                     to_json_string(message_id_), to_json_string(client_model_),
                     collector_.content(), name_of(end->reason),
                     end->stop_sequence ? to_json_string(*end->stop_sequence) : "null",
                     usage_json(end->usage));
}

}  // namespace werk::gateway
