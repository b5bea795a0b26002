// Recorder: where all that the node records comes together, the counters and the feed of events. It
// takes what the runtime cache tells of runtimes and what the gateway tells of calls. Owned by the
// app and borrowed by both, so it outlives them; loop thread only.
#pragma once

#include "werk/telemetry/event_feed.hpp"
#include "werk/telemetry/metrics.hpp"
#include "werk/telemetry/runtime_sink.hpp"

namespace werk::telemetry {

class Recorder final : public RuntimeSink {
 public:
  Metrics& metrics() { return metrics_; }
  EventFeed& events() { return events_; }

  void starting(const RuntimeName& runtime) override;
  void progressed(const RuntimeName& runtime, std::string_view what) override;
  void ready(const RuntimeName& runtime, std::chrono::duration<double> took,
             std::size_t slots) override;
  void start_failed(const RuntimeName& runtime, const Error& error) override;
  void stopping(const RuntimeName& runtime, StopReason reason) override;
  void stopped(const RuntimeName& runtime, StopReason reason) override;
  void died(const RuntimeName& runtime, std::string_view how) override;

 private:
  Metrics metrics_;
  EventFeed events_;
};

}  // namespace werk::telemetry
