// What a running llama-server says of itself, read from the bodies of its status routes and
// compared with what was asked of it. An engine whose health is fine but that serves another model,
// or gives less room than asked, must not be used. Pure functions over text that comes from
// outside, any thread. Failures are `engine_failed` when a body is not what the route promises,
// `start_failed` when the engine is not the one that was wanted. Source: /v1/models, /props and
// /slots of llama.cpp v0.5.0 and 0.7.0, seen running.
#pragma once

#include <string_view>

#include "werk/base/result.hpp"
#include "werk/engine/engine.hpp"

namespace werk::engine::llama_server {

// `start_failed` unless the body of /v1/models lists `alias`.
Status check_serves(std::string_view models_body, std::string_view alias);

// Slots, context and abilities from the body of /props. `engine_version` is left to the caller;
// `pid` too.
Result<RuntimeFacts> parse_props(std::string_view props_body);

// Who decided the size: Werk's plan, or words of the user's own on the launch line, whose effect is
// taken as it is.
enum class SizedBy : std::uint8_t { plan, extra_arguments };

// `start_failed` when the engine has fewer slots, or a smaller context in each, than the plan asked
// for. More is fine: the engine rounds a context up to a multiple of 256.
Status check_sizes(const StartPlan& plan, const RuntimeFacts& facts, SizedBy slots,
                   SizedBy context);

// How many slots work now, from the body of /slots.
Result<std::size_t> count_busy_slots(std::string_view slots_body);

}  // namespace werk::engine::llama_server
