// One question to a node and its answer on the screen as it arrives: text on standard output,
// reasoning dimmed on standard error, and on a terminal what is waited for. Shared by `werk run`
// and `werk chat`. Blocking; a signal ends the answer, and what came until then is kept.
#pragma once

#include <optional>
#include <string>

#include "werk/app/command_line.hpp"
#include "werk/app/commands/ask_stream.hpp"
#include "werk/app/node_client.hpp"

namespace werk::app {

// The body of a chat completion; `messages` is a JSON array, an empty model leaves it out.
std::string question_body(const std::string& model, const std::string& messages,
                          const AskOptions& options);

struct Answered {
  std::string text;  // as much as came
  AnswerFacts facts;
  // `cancelled` after a signal, or when whoever read standard output has left.
  std::optional<Error> problem;
  bool reader_left = false;
};

Answered show_answer(const NodeClient& node, const std::string& model, const std::string& messages,
                     const AskOptions& options);

}  // namespace werk::app
