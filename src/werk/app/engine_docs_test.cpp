// docs/concurrency.md against what the engines declare.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "werk/app/engine_kinds.hpp"

namespace werk::app {
namespace {

std::string calls_at_once(engine::Overlap overlap) {
  switch (overlap) {
    case engine::Overlap::native: return "overlap";
    case engine::Overlap::serialized: return "one after the other";
    case engine::Overlap::one_shot: return "a process each";
  }
  return "";
}

std::string row_of(const engine::EngineInfo& info) {
  return fmt::format("| `{}` | `{}` | `{}` | {} | {} |", info.name, fmt::join(info.formats, "`, `"),
                     info.pool, calls_at_once(info.overlap),
                     info.ownership == engine::Ownership::owned ? "Werk's" : "somebody else's");
}

// The rows of the table with this head.
std::vector<std::string> documented() {
  std::ifstream file(std::string(WERK_DOCUMENTS) + "/concurrency.md");
  EXPECT_TRUE(file.is_open());
  std::vector<std::string> rows;
  bool in_table = false;
  for (std::string line; std::getline(file, line);) {
    if (line == "| engine | models | pool | calls on one runtime | the process is |") {
      in_table = true;
    } else if (!line.starts_with('|')) {
      in_table = false;
    } else if (in_table && !line.starts_with("|---")) {
      rows.push_back(line);
    }
  }
  return rows;
}

TEST(Documents, TheConcurrencyTableSaysWhatTheEnginesDeclare) {
  std::vector<std::string> declared;
  for (const engine::EngineInfo& info : engine_kinds()) declared.push_back(row_of(info));
  EXPECT_EQ(documented(), declared);
}

}  // namespace
}  // namespace werk::app
