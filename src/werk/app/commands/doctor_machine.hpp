// What the doctor sees of the machine beside engines and models: the home and its node, the port,
// sockets, descriptors, memory and disk. Each look is short; the port is tried and given back.
// Blocking; main thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "werk/app/commands/doctor_report.hpp"
#include "werk/app/settings.hpp"
#include "werk/process/socket_folder.hpp"

namespace werk::app {

// `largest_model_bytes` is what the memory is compared with; 0 where there is none.
std::vector<MachineFinding> look_at_machine(const Settings& settings,
                                            const std::filesystem::path& home,
                                            const Result<process::SocketFolder>& sockets,
                                            std::uint64_t largest_model_bytes);

}  // namespace werk::app
