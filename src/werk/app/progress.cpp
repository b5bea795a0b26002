#include "werk/app/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "werk/app/terminal.hpp"
#include "werk/base/text.hpp"

namespace werk::app {
namespace {

using namespace std::chrono_literals;

constexpr auto kBetweenLines = 200ms;
constexpr auto kBetweenSamples = 500ms;
constexpr std::size_t kSamplesMax = 20;
constexpr auto kRateFrom = 1s;  // before that a rate says nothing
constexpr std::size_t kNameColumns = 20;

// ASCII is cut at a column; other texts at a byte where a character begins.
std::string shortened(std::string_view name) {
  if (name.size() <= kNameColumns) return std::string(name);
  std::size_t end = kNameColumns - 2;
  while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xC0U) == 0x80U) --end;
  return fmt::format("{}..", name.substr(0, end));
}

}  // namespace

std::string readable_duration(std::chrono::seconds duration) {
  const auto seconds = duration.count();
  if (seconds < 60) return fmt::format("{} s", seconds);
  const auto minutes = (seconds + 30) / 60;
  if (minutes < 60) return fmt::format("{} min", minutes);
  constexpr std::int64_t kHoursMax = 48;
  if (minutes / 60 >= kHoursMax) return fmt::format("{} days", minutes / 60 / 24);
  return fmt::format("{} h {} min", minutes / 60, minutes % 60);
}

std::string TransferLine::text(std::string_view name, std::uint64_t done, std::uint64_t total,
                               std::chrono::milliseconds elapsed) {
  // A hundred only when all is done.
  const double share =
      total == 0 ? 100.0 : 100.0 * static_cast<double>(done) / static_cast<double>(total);
  std::string line = fmt::format("{}  {} of {}, {} %", shortened(name), readable_bytes(done),
                                 readable_bytes(total), static_cast<int>(share));
  if (samples_.empty() || elapsed - samples_.back().at >= kBetweenSamples) {
    samples_.push_back({elapsed, done});
    if (samples_.size() > kSamplesMax) samples_.pop_front();
  }
  const Sample& first = samples_.front();
  if (elapsed - first.at < kRateFrom || done <= first.done) return line;
  const double seconds = std::chrono::duration<double>(elapsed - first.at).count();
  const double rate = static_cast<double>(done - first.done) / seconds;
  line += fmt::format(", {}/s", readable_bytes(static_cast<std::uint64_t>(rate)));
  if (done < total) {
    const double left = static_cast<double>(total - done) / rate;
    const auto whole = std::chrono::ceil<std::chrono::seconds>(std::chrono::duration<double>(left));
    line += fmt::format(", {} left", readable_duration(whole));
  }
  return line;
}

ProgressLine::ProgressLine() : terminal_(can_rewrite(STDERR_FILENO)) {}

void ProgressLine::show(std::string_view name, std::uint64_t done, std::uint64_t total) {
  if (!terminal_) return;
  const auto now = Clock::now();
  if (!begin_) {
    begin_ = now;
    line_ = TransferLine();
  } else if (now - shown_at_ < kBetweenLines && done < total) {
    return;
  }
  shown_at_ = now;
  const auto elapsed = std::chrono::duration_cast<std::chrono::milliseconds>(now - *begin_);
  fmt::print(stderr, "\r\033[K{}", line_.text(printable(name), done, total, elapsed));
  std::fflush(stderr);
}

void ProgressLine::clear() {
  if (!begin_) return;
  begin_.reset();
  fmt::print(stderr, "\r\033[K");
  std::fflush(stderr);
}

}  // namespace werk::app
