// What a peer's pages tell, read from their text: the list of its models and, of another Werk, how
// many of its slots work. Peers are strangers: what is missing or odd is unknown, not an error,
// unless nothing can be read at all. Pure, bounded.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "werk/base/result.hpp"
#include "werk/engine/engine.hpp"

namespace werk::engine::remote {

inline constexpr std::size_t kPageBytesMax = 4 * 1024 * 1024;
inline constexpr std::size_t kModelsMax = 2000;

// One entry of a peer's GET /v1/models.
struct PeerModel {
  enum class Place : std::uint8_t { its_own, elsewhere };

  std::string id;
  std::string owned_by;              // "llamacpp", "vllm", "werk"; as the peer says it
  std::uint64_t context_tokens = 0;  // 0: it doesn't tell
  std::int64_t created = 0;          // seconds since 1970; 0: it doesn't tell
  Place place = Place::its_own;      // elsewhere: a remote of the peer

  bool operator==(const PeerModel&) const = default;
};

// Entries without a usable id are left out. Fails when the body is no list of models.
Result<std::vector<PeerModel>> read_models_page(std::string_view body);

// Of the ready runtimes of that model on another Werk; none: it runs none, or doesn't know.
// Fails when the body isn't a Werk's observability.
Result<std::optional<NativeSlots>> read_observability(std::string_view body,
                                                      std::string_view model);

}  // namespace werk::engine::remote
