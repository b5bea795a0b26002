// What [models."ID".defaults] may hold: members of chat requests, by the names that OpenAI's
// dialect and llama-server have for them, each with its type and range. Pure, any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "werk/app/config_file.hpp"
#include "werk/base/result.hpp"

namespace werk::app {

std::vector<std::string> request_default_names();

// The value as JSON, as requests get it. Fails with `not_found` for a name that isn't known, else
// with what the member takes.
Result<std::string> request_default(std::string_view name, const ConfigValue& value);

}  // namespace werk::app
