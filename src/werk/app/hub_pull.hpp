// `werk pull hf:ORG/REPO`: looks at a repository of the hub, chooses the files of one model,
// fetches them below `downloads` in the home and moves them into the store. What came stays there
// when a pull ends early, however it ends, and the next one goes on from it; after a success
// nothing is left. Two pulls of the same files wait for each other, others run side by side.
// Blocking; main thread of a command.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "werk/app/command_line.hpp"
#include "werk/app/hub.hpp"
#include "werk/app/hub_download.hpp"
#include "werk/app/steps.hpp"
#include "werk/base/result.hpp"

namespace werk::app {

struct HubPull {
  std::filesystem::path home;
  HubAccess hub;
  HubName name;
  std::string revision = "main";
  std::string file;  // empty: chosen by quantization
  std::string id;    // empty: hub_model_id()
  std::vector<std::string> aliases;
  IfMissing if_missing = IfMissing::no;
};

// Gives a sentence about what is there now. `conflict` when the id or an alias belongs to another
// model; `cancelled` when the person ended it.
Result<std::string> pull_from_hub(const HubPull& pull, const Surroundings& around, const Say& say,
                                  const Patience& patience = {});

}  // namespace werk::app
