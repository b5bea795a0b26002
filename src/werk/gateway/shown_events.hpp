// For tests: a sink that shows the events of a generation as words, "[text ab][end 0]", in the
// order in which they came. It takes all of them, or refuses each where it is told to fail.
// Owned by the test.
#pragma once

#include <fmt/format.h>

#include <string>
#include <variant>

#include "werk/chat/event.hpp"

namespace werk::gateway {

class ShownEvents final : public chat::EventSink {
 public:
  Status event(const chat::GenerationEvent& event) override {
    shown += std::visit([](const auto& each) { return show(each); }, event);
    return fails ? Status(fail(ErrorCode::engine_failed, "full")) : Status();
  }
  std::string shown;
  bool fails = false;

 private:
  static std::string show(const chat::Started& event) {
    return fmt::format("[start {} {}]", event.prompt_tokens, event.cached_tokens);
  }
  static std::string show(const chat::TextDelta& event) { return "[text " + event.text + "]"; }
  static std::string show(const chat::ReasoningDelta& event) {
    return "[think " + event.text + "]";
  }
  static std::string show(const chat::ToolCallDelta& event) {
    return fmt::format("[call {} {} {} {}]", event.index, event.id, event.name, event.arguments);
  }
  static std::string show(const chat::Finished& event) {
    std::string shown = fmt::format("[end {}", static_cast<int>(event.reason));
    if (event.stop_sequence) shown += " at " + *event.stop_sequence;
    if (event.usage) {
      shown += fmt::format(" used {} {} {}", event.usage->prompt_tokens, event.usage->cached_tokens,
                           event.usage->completion_tokens);
    }
    return shown + "]";
  }
};

}  // namespace werk::gateway
