// Any bytes as what a worker sends: frames come out the same however the bytes are cut, each is a
// message or a broken rule, and a generation made of the messages gives chunks of valid JSON. And
// any JSON as a request: what the worker is sent for it is valid JSON too.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "werk/base/assert.hpp"
#include "werk/base/json_scan.hpp"
#include "werk/engine/worker/answer_chunks.hpp"
#include "werk/engine/worker/chat_task.hpp"
#include "werk/engine/worker/frames.hpp"
#include "werk/engine/worker/messages.hpp"

namespace werk::engine::worker {
namespace {

constexpr std::size_t kSmallFrame = 512;

bool is_json(std::string_view text) {
  JsonScanner scanner;
  return scanner.feed(text) && scanner.finish();
}

std::vector<std::string> frames(std::string_view stream, std::size_t piece) {
  FrameReader reader(kSmallFrame);
  std::vector<std::string> texts;
  for (std::size_t at = 0; at < stream.size(); at += piece) {
    reader.feed(stream.substr(at, piece));
    while (true) {
      const auto frame = reader.next();
      if (!frame) return texts;
      if (!*frame) break;
      texts.emplace_back(**frame);
    }
  }
  return texts;
}

void generation(const std::vector<std::string>& texts) {
  ChatTask task;
  task.has_tools = true;
  task.stops = {"END", "\n\n"};
  AnswerChunks chunks(task, "m", "s");
  for (const std::string& text : texts) {
    const auto message = read_message(text);
    if (!message) continue;
    if (const auto* started = std::get_if<GenerationStarted>(&*message)) chunks.started(*started);
    if (const auto* token = std::get_if<TokenEvent>(&*message)) chunks.token(*token);
  }
  chunks.finished(GenerationFinished{});
  std::string last;
  while (const auto chunk = chunks.next()) {
    WERK_ASSERT(*chunk == kStreamEnd || is_json(*chunk));
    last = *chunk;
  }
  WERK_ASSERT(last == kStreamEnd);
}

}  // namespace
}  // namespace werk::engine::worker

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace worker = werk::engine::worker;
  if (size == 0) return 0;
  const std::string_view input(reinterpret_cast<const char*>(data) + 1, size - 1);
  if ((data[0] & 1u) != 0) {
    const auto task = worker::read_chat_task(input);
    if (!task) return 0;
    WERK_ASSERT(worker::is_json(worker::generate_message(1, *task)));
    WERK_ASSERT(worker::is_json(worker::count_message(2, *task)));
    return 0;
  }
  const auto whole = worker::frames(input, input.size() + 1);
  WERK_ASSERT(worker::frames(input, 1 + data[0] / 2u) == whole);
  worker::generation(whole);
  return 0;
}
