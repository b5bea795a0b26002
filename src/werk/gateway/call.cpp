#include "werk/gateway/call.hpp"

#include "werk/base/log.hpp"
#include "werk/base/text.hpp"
#include "werk/gateway/errors.hpp"

namespace werk::gateway {
namespace {

std::string seconds(async::Duration duration) {
  return fmt::format("{:.3f}", std::chrono::duration<double>(duration).count());
}

std::string tokens(const std::optional<std::uint64_t>& count) {
  return count ? std::to_string(*count) : "-";
}

std::string_view name_of(Call::Outcome outcome) {
  switch (outcome) {
    case Call::Outcome::served: return "served";
    case Call::Outcome::failed: return "failed";
    case Call::Outcome::cancelled: return "cancelled";
  }
  return "failed";
}

}  // namespace

Call::Call(CallCounters& counters, async::Clock& clock, std::string id, std::string route)
    : counters_(counters),
      clock_(clock),
      id_(std::move(id)),
      route_(std::move(route)),
      begun_(clock.now()) {
  ++counters_.active;
}

Call::~Call() {
  --counters_.active;
  if (outcome_ == Outcome::served) ++counters_.served;
  if (outcome_ == Outcome::failed) ++counters_.failed;
  if (outcome_ == Outcome::cancelled) ++counters_.cancelled;
  log::info(
      "call id={} model={} route={} status={} load={} wait={} first={} total={} in={} cached={} "
      "out={} outcome={}{}",
      id_, model.empty() ? "-" : shell_line(std::vector<std::string>{printable(model)}), route_,
      status, seconds(load_time), seconds(permit_time), first_byte_ ? seconds(*first_byte_) : "-",
      seconds(clock_.now() - begun_), tokens(prompt_tokens), tokens(cached_tokens),
      tokens(completion_tokens), name_of(outcome_), cause_);
}

void Call::first_byte() {
  if (!first_byte_) first_byte_ = clock_.now() - begun_;
}

void Call::ended(Outcome outcome) { outcome_ = outcome; }

void Call::failed(const Error& error) {
  if (error.code == ErrorCode::cancelled) return cancelled();
  outcome_ = Outcome::failed;
  cause_ =
      fmt::format(" code={} origin={}", werk::name_of(error.code), werk::name_of(error.origin));
}

}  // namespace werk::gateway
