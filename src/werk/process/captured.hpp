// run_captured: one short run of a program for what it prints, bounded in time and in bytes. The
// caller owns the coroutine; the child ends with it. Loop thread only.
#pragma once

#include "werk/process/child.hpp"

namespace werk::process {

struct Captured {
  ExitStatus status;
  std::string out;
  std::string err;
  bool cut = false;  // more than output_bytes_max came on one of the two; the rest was thrown away
};

// Runs the command and collects both streams, at most `output_bytes_max` of each. What `spawn`
// refuses is refused here; engine_timeout once `limit` has passed (zero: none), cancelled once
// `stop` was requested; in both cases the process is killed and reaped before this returns.
async::awaitable<Result<Captured>> run_captured(Children& children, async::Clock& clock,
                                                Command command, async::Duration limit,
                                                std::size_t output_bytes_max, std::stop_token stop);

}  // namespace werk::process
