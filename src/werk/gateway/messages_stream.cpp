#include "werk/gateway/messages_stream.hpp"

#include <fmt/format.h>

#include <iterator>

#include "werk/base/json_cursor.hpp"
#include "werk/gateway/messages_errors.hpp"

namespace werk::gateway {

std::string usage_json(const MessageUsage& usage) {
  const auto number = [](const std::optional<std::uint64_t>& count) {
    return count ? std::to_string(*count) : std::string("null");
  };
  return fmt::format(
      R"({{"input_tokens":{},"cache_creation_input_tokens":0,"cache_read_input_tokens":{},)"
      R"("output_tokens":{}}})",
      number(usage.input_tokens), number(usage.cache_read_input_tokens),
      number(usage.output_tokens));
}

void MessageEventWriter::start(const MessageUsage& usage) {
  out_ += "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":";
  append_json_string(out_, message_id_);
  out_ += R"(,"type":"message","role":"assistant","model":)";
  append_json_string(out_, client_model_);
  out_ += R"(,"content":[],"stop_reason":null,"stop_sequence":null,"usage":)";
  out_ += usage_json(usage);
  out_ += "}}\n\n";
}

void MessageEventWriter::open(const BlockHead& head) {
  kind_ = head.kind;
  std::string_view words;
  switch (kind_) {
    case BlockKind::thinking: words = R"("thinking_delta","thinking":)"; break;
    case BlockKind::text: words = R"("text_delta","text":)"; break;
    case BlockKind::tool_use: words = R"("input_json_delta","partial_json":)"; break;
  }
  delta_head_ = fmt::format(
      "event: content_block_delta\ndata: {{\"type\":\"content_block_delta\","
      "\"index\":{},\"delta\":{{\"type\":{}",
      index_, words);
  fmt::format_to(std::back_inserter(out_),
                 "event: content_block_start\ndata: {{\"type\":\"content_block_start\","
                 "\"index\":{},\"content_block\":",
                 index_);
  switch (head.kind) {
    case BlockKind::thinking: out_ += R"({"type":"thinking","thinking":"","signature":""})"; break;
    case BlockKind::text: out_ += R"({"type":"text","text":""})"; break;
    case BlockKind::tool_use:
      out_ += R"({"type":"tool_use","id":)";
      append_json_string(out_, head.id);
      out_ += R"(,"name":)";
      append_json_string(out_, head.name);
      out_ += R"(,"input":{}})";
      break;
  }
  out_ += "}\n\n";
}

void MessageEventWriter::delta(std::string_view text) {
  out_ += delta_head_;
  append_json_string(out_, text);
  out_ += "}}\n\n";
}

void MessageEventWriter::close() {
  if (kind_ == BlockKind::thinking) {
    fmt::format_to(std::back_inserter(out_),
                   "event: content_block_delta\ndata: {{\"type\":\"content_block_delta\","
                   "\"index\":{},\"delta\":{{\"type\":\"signature_delta\",\"signature\":\"{}\"}}}}"
                   "\n\n",
                   index_, kThinkingSignature);
  }
  fmt::format_to(std::back_inserter(out_),
                 "event: content_block_stop\ndata: {{\"type\":\"content_block_stop\","
                 "\"index\":{}}}\n\n",
                 index_);
  ++index_;
}

void MessageEventWriter::end(const MessageEnd& end) {
  fmt::format_to(std::back_inserter(out_),
                 "event: message_delta\ndata: {{\"type\":\"message_delta\",\"delta\":"
                 "{{\"stop_reason\":\"{}\",\"stop_sequence\":{}}},\"usage\":{}}}\n\n"
                 "event: message_stop\ndata: {{\"type\":\"message_stop\"}}\n\n",
                 name_of(end.reason),
                 end.stop_sequence ? to_json_string(*end.stop_sequence) : "null",
                 usage_json(end.usage));
}

MessagesStream::MessagesStream(MessagesStreamOptions options, std::string& out)
    : request_id_(std::move(options.request_id)),
      out_(out),
      writer_(std::move(options.message_id), std::move(options.client_model), out),
      blocks_(std::move(options.blocks), writer_) {}

Status MessagesStream::event(const chat::GenerationEvent& event) {
  if (blocks_.over()) return {};
  Status status = blocks_.event(event);
  if (status && blocks_.over()) ended_ = true;
  return status;
}

void MessagesStream::ping() {
  if (!ended_) out_ += kMessagesPing;
}

void MessagesStream::error(const Error& error) {
  if (std::exchange(ended_, true)) return;
  blocks_.abandon();
  out_ += messages_error_event(error, request_id_);
}

}  // namespace werk::gateway
