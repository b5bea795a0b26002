#include "werk/engine/known_servers.hpp"

namespace werk::engine {

ChatProfile llama_server_profile() {
  ChatProfile profile;
  profile.names_tools_as_objects = false;
  profile.tells_stop_when_verbose = true;
  profile.reasoning_budget_member = "reasoning_budget_tokens";
  profile.reports_progress = true;
  return profile;
}

}  // namespace werk::engine
