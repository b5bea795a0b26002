// The worker engines that Werk brings, as plain data: what each is called, which models it reads,
// which program runs it and how its interpreter is found. Another worker is another row here. Pure;
// any thread.
#pragma once

#include <span>
#include <string_view>

namespace werk::engine::worker {

struct WorkerKind {
  std::string_view name;     // as --backend spells it; its pool has the same name
  std::string_view format;   // of the models it reads, in the manifest's spelling
  std::string_view script;   // below the folder of worker programs
  std::string_view package;  // what its interpreter must have, in the package registry's spelling
  std::string_view modules;  // what Python imports of it; that they load is tried once
  std::span<const std::string_view> variables;  // that name the interpreter, first wins
  std::string_view cache_variable;              // bounds its residents
  std::string_view summary;
};

extern const WorkerKind kOnnxGenai;
extern const WorkerKind kTransformers;

// By engine name; null if it is none of them.
const WorkerKind* worker_kind(std::string_view name);

}  // namespace werk::engine::worker
