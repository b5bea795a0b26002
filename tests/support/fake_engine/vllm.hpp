// What the fake does when its name is "vllm": the command line of `vllm serve`, the routes and
// error bodies of 0.32.0, and a helper process that stands for the engine core behind the front
// end. The rest (generations, control, settings) is the same program. Nothing here has state.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/fake_engine/command_line.hpp"
#include "tests/support/fake_engine/wire.hpp"

namespace werk::fake {

bool is_vllm(const std::string& program);

// "serve DIR --uds PATH --served-model-name NAME ..."; every flag is taken.
CommandLine read_vllm_line(const std::vector<std::string>& words);

// A process that ignores SIGTERM and waits for its end.
pid_t start_core();
// Returns when it has ended, whoever ended it.
void wait_for_core(pid_t core);

enum class Core : std::uint8_t { alive, dead };

struct StatusAnswer {
  unsigned status = 200;
  std::string body;
};

// What such a front end answers to everything but a chat; none: it has no such route.
std::optional<StatusAnswer> vllm_status(const Request& request, const std::string& model_name,
                                        const Settings& settings, Core core);

std::string vllm_error(unsigned status, std::string_view type, std::string_view message);
// What calls get once the core is dead.
std::string core_error();

}  // namespace werk::fake
