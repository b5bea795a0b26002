// What a chat template seems to support, from a look at its text. Nothing is executed: the text is
// split into Jinja's blocks, names and quoted texts, and judged by the rules at each member. An
// engine that runs the template (llama-server's `/props`, chat_template_caps) has the last word;
// this look serves lists and early refusals. Pure; any thread; linear in the text.
#pragma once

#include <string_view>

namespace werk::model {

struct ChatTemplateFacts {
  // There is a template at all.
  bool present = false;
  // A block names the variable `tools` (not as a member of something else, not in quotes or
  // comments), or the file has a template of its own for tools.
  bool tools = false;
  // A block quotes 'system' or writes out a message's role, and no raise_exception says that a
  // system message is not supported.
  bool system = false;
};

ChatTemplateFacts look_at_chat_template(std::string_view chat_template,
                                        std::string_view tool_template = {});

}  // namespace werk::model
