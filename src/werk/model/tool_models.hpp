// The models that other tools keep on this machine: Ollama, LM Studio, the Hugging Face hub's cache
// and llama.cpp's cache, each under the name its tool has for it. Everything is read and nothing
// is written; what these tools' files say is taken for foreign text. Blocks on the disk; any
// thread.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "werk/model/home.hpp"
#include "werk/model/import_plan.hpp"

namespace werk::model {

struct ToolModel {
  std::string tool;                  // "Ollama"
  std::string name;                  // as the tool calls it: "llama3.2:latest"
  std::vector<std::string> aliases;  // what else it is called, here or by another tool
  std::filesystem::path path;        // its weights, or where it would have them
  std::optional<ImportPlan> plan;    // none: it can't be used
  std::string unusable;              // why, as a sentence
};

struct ToolScan {
  std::vector<ToolModel> models;   // by tool and name; one file under several names is there once
  std::vector<std::string> notes;  // what could not be looked at, and why
};

// Where the tools keep their models.
struct ToolFolders {
  std::vector<std::filesystem::path> ollama;     // with blobs/ and manifests/
  std::vector<std::filesystem::path> lm_studio;  // PUBLISHER/REPOSITORY/FILE
  std::vector<std::filesystem::path> hub;        // models--ORG--REPOSITORY/snapshots
  std::vector<std::filesystem::path> llama_cpp;  // ORG_REPOSITORY_FILE, manifest=...json
};

// By the variables that those tools read, else their own defaults; whether they exist or not.
ToolFolders tool_folders(const Environment& environment);

ToolScan scan_tools(const ToolFolders& folders);

}  // namespace werk::model
