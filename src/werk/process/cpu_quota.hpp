// What control groups leave a process of the machine's processor time (`docker run --cpus`,
// systemd's CPUQuota=): threads beyond that are stopped by the kernel in the middle of their work,
// and others wait for them. Version 2 of control groups alone. Reads a few small files; any thread.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string_view>

namespace werk::process {

// Whole cores, at least 1, of the least of the limits of a group and those around it; none where
// nothing is limited. `mount` is where the groups are, `own` the content of /proc/self/cgroup.
std::optional<std::size_t> quota_cores(const std::filesystem::path& mount, std::string_view own);

}  // namespace werk::process
