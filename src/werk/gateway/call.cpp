#include "werk/gateway/call.hpp"

#include <utility>

#include "werk/base/log.hpp"
#include "werk/base/text.hpp"
#include "werk/gateway/calls.hpp"

namespace werk::gateway {
namespace {

constexpr std::size_t kShownNameMax = 200;

std::string seconds(async::Duration duration) {
  return fmt::format("{:.3f}", std::chrono::duration<double>(duration).count());
}

std::string tokens(const std::optional<std::uint64_t>& count) {
  return count ? std::to_string(*count) : "-";
}

}  // namespace

Call::Call(Calls& calls, std::string id, std::string_view route)
    : calls_(calls),
      id_(std::move(id)),
      route_(route),
      begun_(calls.now()),
      phase_since_(begun_),
      last_life_(begun_),
      place_(calls.enter(*this)) {}

Call::~Call() {
  const async::Duration total = calls_.now() - begun_;
  write_access_line(total);
  CallRecord record;
  record.id = id_;
  record.dialect = dialect();
  record.route = route_;
  record.model = shown_model();
  record.outcome = outcome_;
  record.status = status;
  if (error_ && outcome_ == Outcome::failed) record.cause = error_->code;
  record.ended_at = std::chrono::system_clock::now();
  record.load_time = load_time_;
  record.permit_time = permit_time_;
  record.first_byte = first_byte_;
  record.total = total;
  record.tokens = {prompt_tokens, cached_tokens, completion_tokens};
  // What was only counted didn't run; of an answer that was cut off its parts are what is known.
  telemetry::TokenCounts ran;
  if (admitted_) ran = {prompt_tokens, cached_tokens, completion_tokens.value_or(parts_)};
  const telemetry::EndedCall ended{record.dialect, route_,       model_id(),   outcome_,
                                   status,         record.cause, phase_,       total,
                                   first_byte_,    ran,          inter_token_, admitted_};
  calls_.leave(place_, std::move(record), ended);
}

telemetry::Dialect Call::dialect() const {
  return route_.starts_with("/v1/messages") ? telemetry::Dialect::anthropic
                                            : telemetry::Dialect::openai;
}

std::string_view Call::model_id() const {
  return way_ ? std::string_view(way_->plan.manifest.id) : std::string_view();
}

std::string Call::runtime_key() const { return way_ ? way_->plan.key.text() : std::string(); }

void Call::waits_for(runtime::WaitFor what) {
  switch (what) {
    case runtime::WaitFor::place: enter(Phase::place); break;
    case runtime::WaitFor::load: enter(Phase::loading); break;
    case runtime::WaitFor::slot: enter(Phase::slot); break;
  }
  waits_ = true;
}

void Call::admitted() {
  admitted_ = true;
  enter(Phase::prompt);
  calls_.admitted(*this);
}

std::uint64_t Call::piece(std::uint64_t parts, async::TimePoint now) {
  last_life_ = now;
  const std::uint64_t fresh = parts - parts_;
  if (fresh == 0) return 0;
  if (parts_ == 0) {
    phase_ = Phase::generating;
    phase_since_ = now;
  } else {
    const std::chrono::duration<double> gap = now - last_part_;
    inter_token_.observe(gap.count() / static_cast<double>(fresh), fresh);
  }
  parts_ = parts;
  last_part_ = now;
  return fresh;
}

void Call::first_byte() {
  if (!first_byte_) first_byte_ = calls_.now() - begun_;
}

void Call::ended(Outcome outcome) {
  end_wait();
  outcome_ = outcome;
}

void Call::failed(const Error& error) {
  if (error.code == ErrorCode::cancelled) return cancelled();
  ended(Outcome::failed);
  error_ = error;
}

std::string Call::shown_model() const {
  if (way_) return std::string(model_id());
  return printable(std::string_view(model).substr(0, kShownNameMax));
}

void Call::enter(Phase phase) {
  if (phase_ == phase) return;
  end_wait();
  phase_ = phase;
  phase_since_ = calls_.now();
  last_life_ = phase_since_;
}

void Call::end_wait() {
  if (!std::exchange(waits_, false)) return;
  async::Duration& time = phase_ == Phase::slot ? permit_time_ : load_time_;
  time += calls_.now() - phase_since_;
}

void Call::write_access_line(async::Duration total) const {
  if (!log::enabled(log::Level::info)) return;
  const bool says_why = error_ && outcome_ == Outcome::failed;
  const std::string cause = says_why
                                ? fmt::format(" code={} origin={}", werk::name_of(error_->code),
                                              werk::name_of(error_->origin))
                                : std::string();
  log::info(
      "call id={} model={} route={} status={} load={} wait={} first={} total={} in={} cached={} "
      "out={} outcome={}{}",
      id_, model.empty() ? "-" : shell_line(std::vector<std::string>{printable(model)}), route_,
      status, seconds(load_time_), seconds(permit_time_), first_byte_ ? seconds(*first_byte_) : "-",
      seconds(total), tokens(prompt_tokens), tokens(cached_tokens), tokens(completion_tokens),
      telemetry::name_of(outcome_), cause);
}

}  // namespace werk::gateway
