// Which tool call a streamed fragment belongs to. Engines leave out indices, repeat 0, leave out
// ids or send them late; the ledger gives each call of a choice a stable index 0, 1, ... and an id,
// and edits the fragments accordingly, in place. Owned by one ChatStreamFilter; a plain value, any
// thread. Bounded in calls and bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "werk/base/json_scan.hpp"
#include "werk/base/json_splice.hpp"
#include "werk/base/result.hpp"

namespace werk::gateway {

inline constexpr std::size_t kToolCallsMax = 128;
inline constexpr std::size_t kToolArgumentBytesMax = std::size_t{8}
                                                     << 20;  // of all calls of an answer

class ToolCallLedger {
 public:
  // Ids of calls that come without one are "call_" + seed + the call's number.
  explicit ToolCallLedger(std::string id_seed) : id_seed_(std::move(id_seed)) {}

  // Takes in one delta's `tool_calls`, a view into the splice's text. Says whether the delta held a
  // fragment at all; fails with engine_failed over a limit.
  Result<bool> take(JsonSplice& splice, std::string_view tool_calls, std::uint32_t choice);

  std::uint32_t count() const { return static_cast<std::uint32_t>(calls_.size()); }

 private:
  struct Call {
    std::uint32_t choice = 0;
    std::uint32_t index = 0;  // as the client sees it
    std::string id;           // as the client sees it
    std::optional<std::uint64_t> engine_index;
    std::string engine_id;
    std::string name;
    JsonScanner arguments;  // tells when they are whole
  };
  struct Fragment {
    std::optional<std::uint64_t> index;
    std::string id;
    std::string name;
    std::string_view function;  // views into the text; empty where absent or null
    std::string_view arguments;
    bool has_id = false;
    bool has_type = false;
  };

  static Fragment read(std::string_view element);
  Call* find(const Fragment& fragment, std::uint32_t choice);
  template <class Predicate>
  Call* latest(Predicate holds);
  Call* with_index(std::uint64_t index, std::uint32_t choice);
  Call* with_id(std::string_view id, std::uint32_t choice);
  Call* last(std::uint32_t choice);
  static bool starts_another(const Call& call, const Fragment& fragment);
  Call& open(const Fragment& fragment, std::uint32_t choice);
  Status take_one(JsonSplice& splice, std::string_view element, std::uint32_t choice);

  std::string id_seed_;
  std::vector<Call> calls_;
  std::size_t argument_bytes_ = 0;
};

}  // namespace werk::gateway
