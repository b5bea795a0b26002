// The short words for events of a chat stream in .exchange files (`text "Hi"`, `finish stop`), the
// same for what the engine says and for what the client must get; README.md lists them. A chunk
// looks as llama-server writes it. Pure.
#pragma once

#include <string>
#include <string_view>

namespace werk::test {

// The engine's own name of every model in these tests.
inline constexpr std::string_view kEngineModel = "the-engines-own-name";

// The event's data; `model_json` is the model's name in it, a JSON string. Lines that are no short
// word stand for themselves.
std::string chunk_data(std::string_view line, std::string_view model_json);

// The line of an event's name, taken off the front of `<event NAME>DATA`; else empty.
std::string take_event_name(std::string_view& line);

}  // namespace werk::test
