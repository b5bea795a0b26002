// Whether a starting engine does something: it prints, its resident memory grows, it reads from the
// disk. Looked at about once a second; a load that shows none of it for the start time-out is given
// up by whoever started it. The look costs two small reads below /proc. Owned by the start; loop
// thread only.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string_view>

namespace werk::engine::llama_server {

struct Activity {
  std::uint64_t output_bytes = 0;
  std::uint64_t resident_bytes = 0;
  std::uint64_t read_bytes = 0;  // from storage; 0 where the system doesn't tell
};

Activity activity_of(pid_t pid, std::uint64_t output_bytes);

// Remembers the most that was seen. Small changes of memory are noise: answering a status request
// causes some.
class ActivityWatch {
 public:
  // What grew since the last call, for people; none if nothing did.
  std::optional<std::string_view> look(const Activity& now);

 private:
  Activity most_;
};

// Memory that a new process could have now; 0 where the system doesn't tell.
std::uint64_t memory_available_bytes();

}  // namespace werk::engine::llama_server
