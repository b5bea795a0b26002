// Any bytes as an engine's stream: the parser yields the same events however they are cut, and what
// the filter lets through is valid JSON that folds to valid JSON.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "werk/base/assert.hpp"
#include "werk/base/json_scan.hpp"
#include "werk/gateway/openai_fold.hpp"
#include "werk/gateway/openai_stream.hpp"
#include "werk/http/sse.hpp"

namespace werk::gateway {
namespace {

struct Event {
  std::string name;
  std::string data;
  http::SseItem::Kind kind;
  bool operator==(const Event&) const = default;
};

// `failed` when a limit was met.
std::vector<Event> read(std::string_view stream, std::size_t piece, bool& failed) {
  http::SseParser parser(512);
  std::vector<Event> events;
  const auto note = [&](const Result<std::optional<http::SseItem>>& item) {
    failed = !item;
    if (failed || !*item) return false;
    events.push_back({std::string((*item)->name), std::string((*item)->data), (*item)->kind});
    return true;
  };
  std::string copy;
  for (std::size_t at = 0; at < stream.size() && !failed; at += piece) {
    copy.assign(stream.substr(at, piece));
    parser.feed(copy);
    while (note(parser.next())) {
    }
  }
  if (!failed) note(parser.finish());
  return events;
}

void require_json(std::string_view text) {
  JsonScanner scanner;
  WERK_ASSERT(scanner.feed(text) && scanner.finish());
}

class CheckedFold final : public ChunkSink {
 public:
  Status chunk(std::span<const std::string_view> pieces) override {
    std::string joined;
    for (const std::string_view piece : pieces) joined += piece;
    require_json(joined);
    WERK_ASSERT(joined.find('\n') == std::string::npos);
    return fold.chunk(pieces);
  }
  ChatFold fold{ChatFoldOptions{.client_model = "m"}};
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::size_t piece = 1 + data[0] % 8;
  const std::string_view stream(reinterpret_cast<const char*>(data) + 1, size - 1);
  bool failed = false;
  bool failed_cut = false;
  const std::vector<Event> events = read(stream, stream.size() + 1, failed);
  const std::vector<Event> cut = read(stream, piece, failed_cut);
  if (!failed && !failed_cut) WERK_ASSERT(events == cut);

  ChatStreamOptions options;
  options.client_model = "m";
  options.usage = (data[0] & 16u) != 0 ? Wanted::yes : Wanted::no;
  options.progress = (data[0] & 32u) != 0 ? Wanted::yes : Wanted::no;
  ChatStreamFilter filter(std::move(options));
  CheckedFold sink;
  for (const Event& event : events) {
    if (!filter.event(event.name, event.data, sink)) return 0;
  }
  if (filter.finish(sink)) require_json(sink.fold.finish());
  return 0;
}

}  // namespace werk::gateway
