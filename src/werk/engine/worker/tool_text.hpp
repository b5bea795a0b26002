// ToolText: reads tool calls out of what a model says, for engines that hand on plain text. How a
// family of models writes a call is one row of a table (tool_formats()). Text streams through;
// what may be the beginning of a call waits until it is clear, and a call is given whole, with a
// name and an object as arguments. What looks like a call and is none, or is cut off, stays text:
// nothing is lost. One per generation; a plain value, any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "werk/base/result.hpp"
#include "werk/chat/event.hpp"

namespace werk::engine::worker {

struct ToolFormat {
  std::string_view name;
  std::string_view open;   // before a call
  std::string_view close;  // behind it
};

// The known ones; the first is what templates with tools are taken to use.
std::span<const ToolFormat> tool_formats();

class ToolText {
 public:
  // Ids of calls are `id_seed` and a number.
  ToolText(const ToolFormat& format, std::string id_seed)
      : format_(format), id_seed_(std::move(id_seed)) {}

  // The next piece of whole UTF-8; its events go to the sink, whose failure is passed on.
  Status take(std::string_view piece, chat::EventSink& sink);
  // The model has ended.
  Status finish(chat::EventSink& sink);
  std::uint32_t calls() const { return calls_; }

 private:
  Status text(std::string_view piece, chat::EventSink& sink);
  Status call(std::string_view inside, chat::EventSink& sink);
  Status advance(chat::EventSink& sink, bool& again);

  const ToolFormat& format_;
  std::string id_seed_;
  std::string held_;
  bool inside_ = false;
  std::uint32_t calls_ = 0;
};

}  // namespace werk::engine::worker
