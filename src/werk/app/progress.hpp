// How far a transfer of bytes is, for a person at a terminal: bytes, rate and the time that is
// left, on one line that rewrites itself. Silent where standard error is no terminal. Main thread
// of a command.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace werk::app {

// Works out the line; pure. The rate is that of the last ten seconds or so, so that it follows a
// disk or a network that changes its pace.
class TransferLine {
 public:
  // `elapsed` since the transfer began; never earlier than in the call before. At most 79 columns:
  // "model.gguf  1.2 GB of 4.7 GB, 26 %, 310.1 MB/s, 12 s left".
  std::string text(std::string_view name, std::uint64_t done, std::uint64_t total,
                   std::chrono::milliseconds elapsed);

 private:
  struct Sample {
    std::chrono::milliseconds at;
    std::uint64_t done;
  };
  std::deque<Sample> samples_;
};

// "12 s", "3 min", "1 h 20 min", "3 days".
std::string readable_duration(std::chrono::seconds duration);

class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // Cheap: the line is rewritten a few times a second.
  void show(std::string_view name, std::uint64_t done, std::uint64_t total);
  // Takes the line away, before something else is printed; the next show() begins a new transfer.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;

  bool terminal_;
  std::optional<Clock::time_point> begin_;
  Clock::time_point shown_at_;
  TransferLine line_;
};

}  // namespace werk::app
