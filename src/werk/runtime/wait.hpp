// What a call waits for before it may run, and who is told of it. The runtime cache tells the
// observer that a call brings along, in the turn in which it changes; the observer may do no more
// than note it, and must outlive the wait. Loop thread only.
#pragma once

#include <cstddef>
#include <cstdint>

namespace werk::runtime {

// place: in a full pool. load: until the model's runtime has started. slot: its turn on a runtime.
enum class WaitFor : std::uint8_t { place, load, slot };

class WaitObserver {
 public:
  virtual ~WaitObserver() = default;
  virtual void waits_for(WaitFor what) = 0;
};

// How many calls wait, by what they wait for.
struct Waits {
  std::size_t place = 0;
  std::size_t load = 0;
  std::size_t slot = 0;

  std::size_t all() const { return place + load + slot; }
};

}  // namespace werk::runtime
