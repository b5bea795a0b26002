// Names of models: which ids are allowed, and what an id's folder is called.
// An id is a text for people and clients ("org/model:Q4_K_M", with spaces and any language); its
// folder's name is plain ASCII and gives the id back. Pure; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "werk/base/result.hpp"

namespace werk::model {

inline constexpr std::size_t kModelIdBytesMax = 255;

// Ids and aliases: 1 to 255 bytes of UTF-8 without control characters, without a space at either
// end and without a `/`-separated part that is empty, "." or "..". Fails with `invalid_request` and
// the rule that was broken.
Status check_model_id(std::string_view id);

// Percent-encodes everything but ASCII letters, digits and `_ - + .` (a leading point is encoded
// too). A name that would be longer than file systems allow ends in "%~" and a digest instead;
// folder_id() cannot give that one back.
std::string folder_name(std::string_view id);

// The id whose folder is called `name`; none when no id's is.
std::optional<std::string> folder_id(std::string_view name);

}  // namespace werk::model
