// What an engine is: a kind of execution that can plan and start runtimes. An adapter
// (engine/<name>) implements Engine and Runtime; everything above them (runtime, routing, gateway)
// sees only these interfaces and never a concrete engine. Owned by the app, which lists the
// concrete ones; used on the loop thread only.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "werk/async/awaitable.hpp"
#include "werk/async/clock.hpp"
#include "werk/async/event.hpp"
#include "werk/base/result.hpp"
#include "werk/model/manifest.hpp"

namespace werk::engine {

// How calls on one runtime may overlap: as many as it has native slots, one after the other, or a
// process for each call.
enum class Overlap : std::uint8_t { native, serialized, one_shot };

// Owned engines are started, stopped and reaped by Werk; external ones are only spoken to.
enum class Ownership : std::uint8_t { owned, external };

// Whether an engine takes a wish for prefix caching (`serve --persistence`): it has no such thing
// or does it anyway, it is asked on its launch line, or it belongs to somebody who decides.
enum class PrefixCachingUse : std::uint8_t { no_effect, on_request, theirs };

// The wire formats in which a runtime may be spoken to as it is.
enum class Dialect : std::uint8_t { openai_chat, anthropic_messages };

// What an engine is, as plain data: the command line, the documentation and the router read it.
struct EngineInfo {
  std::string name;  // as --backend and runtime keys spell it: "llama-cpu"
  std::string pool;  // the residency pool it shares with its relatives: "llama-server"
  std::vector<std::string> formats;  // of models, in the manifest's spelling: "gguf"
  Overlap overlap = Overlap::native;
  Ownership ownership = Ownership::owned;
  PrefixCachingUse prefix_caching = PrefixCachingUse::no_effect;
  std::string summary;  // one line for people
};

// The exact identity of a runtime: two calls with equal keys share one process and one set of
// weights. The digest covers the normalised options that change behaviour; sockets, secrets, logs
// and thread budgets are not part of it.
struct RuntimeKey {
  std::string engine;
  std::string manifest_identity;  // hexadecimal digest
  std::string options_digest;     // hexadecimal digest

  bool operator==(const RuntimeKey&) const = default;
  // "llama-cpu/0123456789ab/89abcdef": short, for people and logs.
  std::string text() const;
  // The name by which the engine knows its model; derived from the whole key, so that it tells a
  // stranger apart.
  std::string alias() const;
};

// Everything that start() needs, decided beforehand and printable. Pure data.
struct StartPlan {
  RuntimeKey key;
  model::Manifest manifest;
  std::filesystem::path model_folder;  // where the manifest's relative file paths start
  std::vector<std::string>
      arguments;  // the launch line after the program, without socket and secret
  // Asked for; what the engine really has stands in RuntimeFacts. 0: Werk bounds nothing.
  std::size_t slots = 1;
  std::uint64_t context_tokens_per_slot = 0;  // 0: the engine decides
};

// What an engine that others call as well tells of its slots.
struct NativeSlots {
  std::size_t total = 0;
  std::size_t busy = 0;
  bool operator==(const NativeSlots&) const = default;
};

// What a running engine says of itself.
struct RuntimeFacts {
  std::size_t slots = 1;  // 0: unknown, or more than Werk need bound; calls go to it as they come
  std::uint64_t context_tokens_per_slot = 0;  // 0: unknown
  std::string engine_version;
  std::optional<int> pid;      // of an owned process
  bool supports_tools = true;  // by the chat template
  bool supports_images = false;
  bool keeps_reasoning = false;    // of earlier turns, by the chat template
  bool takes_later_system = true;  // system messages behind the first, by the chat template
  std::optional<NativeSlots> native_slots = std::nullopt;  // at its last look; none: it tells none
};

// How an engine takes what OpenAI's dialect leaves open: the one place where what differs between
// servers stands as data. The defaults send the least, for a server of which nothing is known,
// since some refuse a request for one member that they don't know. What differs in answers needs no
// profile: every shape that was met is read.
struct ChatProfile {
  bool names_tools_as_objects = true;    // tool_choice may be {"type":"function",...}
  bool tells_stop_when_verbose = false;  // llama-server's __verbose.stopping_word
  bool keeps_earlier_reasoning = false;  // the template has a place for it
  bool takes_later_system = true;        // a system message may stand anywhere
  std::string reasoning_budget_member;   // that takes the budget; empty: none
  bool reports_progress = false;         // of a prompt, where `return_progress` asks for it
  bool takes_stream_options = true;      // where usage is asked for; else it comes or it doesn't
  std::string output_limit_member;       // "max_tokens", "max_completion_tokens"; empty: either
};

// Where and how to send a call in a dialect that the engine speaks itself.
struct HttpTarget {
  std::string unix_path;  // wins over host and port
  std::string host;
  std::uint16_t port = 0;
  std::string tls_name = {};  // not empty: TLS, with a certificate for this name
  Ownership ownership = Ownership::owned;
  std::optional<async::Duration> silence;  // given up after so long; none: the node\'s limit
  std::string path;                        // "/v1/chat/completions"
  std::string authorization;               // whole header value, or empty
  std::string count_path;  // where the same body is counted and not run; empty: nowhere
  std::string count_member = "input_tokens";  // of the answer: where the count stands
  ChatProfile profile;
  std::string model_name;  // what `model` must be on the wire
};

// An answer under way on an engine that is no server: the data of one event of an OpenAI chat
// stream after the other, "[DONE]" last. Destroying it cancels the generation.
class ChatStream {
 public:
  virtual ~ChatStream() = default;
  // Fails as the engine fails, with `cancelled` after a stop; then there is no more.
  virtual async::awaitable<Result<std::string>> next(std::stop_token stop) = 0;
};

// How calls reach an engine that is no server: the body of an OpenAI chat completion goes in, what
// such a server would stream comes out.
class ChatPort {
 public:
  virtual ~ChatPort() = default;
  virtual const ChatProfile& profile() const = 0;
  // What `model` is in the chunks.
  virtual const std::string& model_name() const = 0;
  // Waits for the engine to be free if it is not; the caller's permit says that it soon is.
  virtual async::awaitable<Result<std::unique_ptr<ChatStream>>> chat(std::string body,
                                                                     std::stop_token stop) = 0;
  // The tokens of the prompt that this body comes to.
  virtual async::awaitable<Result<std::uint64_t>> count(std::string body, std::stop_token stop) = 0;
};

// A sign of life during a start. A start without one for the start time-out is given up.
class StartObserver {
 public:
  virtual ~StartObserver() = default;
  virtual void progressed(std::string_view what) = 0;
};

// One loaded instance of a model. Destroyed only after exited() was set. Nothing here waits for the
// engine, except where said.
class Runtime {
 public:
  virtual ~Runtime() = default;
  virtual const RuntimeFacts& facts() const = 0;
  // Empty: this engine doesn't speak the dialect.
  virtual std::optional<HttpTarget> passthrough(Dialect dialect) const = 0;
  // Where calls go that no passthrough takes; null if there is none. Lives as long as the runtime.
  virtual ChatPort* chat_port() { return nullptr; }
  // Set once the engine has ended, by itself or by stop(), and is reaped.
  virtual async::Event& exited() = 0;
  // How it ended and the masked end of what it printed; meaningful once exited() is set.
  virtual std::string exit_reason() const = 0;
  // What a call learned of an engine that nobody can see exit: it answered, were it with a refusal;
  // or it could not be reached, broke off, was silent, or a proxy before it said that it is away.
  virtual void call_answered() {}
  virtual void call_failed(const Error& fault) { static_cast<void>(fault); }
  // A call failed on it as calls on a dead engine do, and it has not ended. Whether the engine
  // itself says that it is dead (bounded to about two seconds); then it is to be stopped.
  virtual async::awaitable<bool> says_dead([[maybe_unused]] std::stop_token stop) {
    co_return false;
  }
  // Asks the engine how many of its slots work now (bounded to about a second). Used to learn when
  // a slot whose caller left is free again.
  virtual async::awaitable<Result<std::size_t>> busy_slots(std::stop_token stop) = 0;
  // Ends the engine and returns when it is reaped: asks first, kills after `grace`. Several callers
  // may wait.
  virtual async::awaitable<void> stop(async::Duration grace) = 0;
};

class Engine {
 public:
  virtual ~Engine() = default;
  virtual const EngineInfo& info() const = 0;
  // What would be started for this model, whose files lie below `folder`, or why it can't be. Pure:
  // touches neither disk nor process.
  virtual Result<StartPlan> plan(const model::Manifest& manifest,
                                 const std::filesystem::path& folder) const = 0;
  // Starts a runtime and returns it ready, or the reason why not, with nothing left running. A stop
  // ends the start at once: the child is killed and reaped before it returns `cancelled`.
  // `observer` must outlive the call.
  virtual async::awaitable<Result<std::unique_ptr<Runtime>>> start(StartPlan plan,
                                                                   StartObserver& observer,
                                                                   std::stop_token stop) = 0;
  // Ends what it keeps beyond its runtimes; once, after the last of them is gone.
  virtual async::awaitable<void> shut_down() { co_return; }
};

}  // namespace werk::engine
