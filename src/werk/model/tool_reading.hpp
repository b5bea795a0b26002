// What the readers of other tools' folders have in common. For tool_models.cpp and the readers
// themselves. Blocking; any thread.
#pragma once

#include <boost/json/value.hpp>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "werk/model/tool_models.hpp"

namespace werk::model {

// Each adds what it finds below the folder, which may be missing.
void read_ollama(const std::filesystem::path& folder, ToolScan& scan);
void read_lm_studio(const std::filesystem::path& folder, ToolScan& scan);
void read_hub(const std::filesystem::path& folder, ToolScan& scan);
void read_llama_cpp(const std::filesystem::path& folder, ToolScan& scan);

// The entries of a folder by name; empty where it doesn't exist. A folder that can't be read is
// noted as the tool's.
std::vector<std::filesystem::path> entries_of(const std::filesystem::path& folder,
                                              std::string_view tool, ToolScan& scan);

// A JSON object of at most a megabyte; none when the file holds anything else.
std::optional<boost::json::object> read_object(const std::filesystem::path& path);

// The text member of an object; empty where there is none.
std::string text_in(const boost::json::object& object, std::string_view member);

// A model with its plan, or with the reason why it has none.
ToolModel planned_model(std::string_view tool, std::string name, const std::filesystem::path& path,
                        ProjectorRule rule, const std::optional<std::filesystem::path>& projector);
ToolModel unusable_model(std::string_view tool, std::string name, const std::filesystem::path& path,
                         std::string reason);

// What a folder holds instead of GGUF: the reason why it is of no use, empty where it has no
// weights of a kind known here.
std::string other_weights(const std::vector<std::filesystem::path>& files);

}  // namespace werk::model
