// What a call needs of its model, and whether the model has it: what an engine would ignore without
// a word is refused with the reason instead. Pure.
#pragma once

#include <string>

#include "werk/base/result.hpp"
#include "werk/engine/engine.hpp"

namespace werk::gateway {

struct Needs {
  bool tools = false;
  bool images = false;
  bool remote_media = false;  // a URL that somebody would have to fetch
};

// unsupported, with the request member at fault.
Status check_abilities(const Needs& needs, const engine::RuntimeFacts& facts,
                       const std::string& model);

}  // namespace werk::gateway
