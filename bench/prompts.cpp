// bench_prompts: P11 and `slots`. Whether the engine's prompt cache serves a conversation through
// the node as well as past it, and how far the engine alone keeps the prefixes of conversations
// that take turns: the node steers nothing. Tokens are counted, nothing is timed.
#include <fmt/format.h>

#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/support/conversation.hpp"
#include "bench/support/main.hpp"
#include "bench/support/mock_control.hpp"
#include "bench/support/report.hpp"

namespace werk::bench {
namespace {

namespace json = boost::json;

constexpr std::size_t kClients = 4;
constexpr std::size_t kTools = 4;
constexpr std::uint64_t kReplyTokens = 8;
constexpr std::size_t kSystemWords = 60;
constexpr std::size_t kFirstWords = 40;
constexpr std::size_t kLaterWords = 15;

std::size_t turns_of(const Setting& setting) { return setting.quick ? 3 : 8; }

enum class Order : std::uint8_t { in_turn, at_once };

// Conversations that have their beginning in common, each with its own questions.
class Talk {
 public:
  Talk(std::size_t conversations, std::size_t system_words, std::size_t tools)
      : prose_(conversations),
        conversations_(conversations, Conversation{Prose(5).words(system_words), tools, {}}) {}

  // One turn of each conversation; the replies stay part of them, as a client keeps them.
  std::vector<Reply> turn(const Party& party, Order order) {
    std::vector<Reply> replies;
    std::vector<std::string> requests;
    for (Conversation& conversation : conversations_) {
      add_question(conversation);
      const std::string request =
          party.request(request_of(party.dialect, party.model, conversation, kReplyTokens));
      if (order == Order::in_turn) {
        replies.push_back(read_reply(party.dialect, ask(party.endpoint, request)));
      } else {
        requests.push_back(request);
      }
    }
    for (const Answer& answer : ask_all(party.endpoint, requests)) {
      replies.push_back(read_reply(party.dialect, answer));
    }
    for (std::size_t i = 0; i < conversations_.size(); ++i) {
      conversations_[i].said.push_back({"assistant", replies[i].text});
    }
    return replies;
  }
  // The next request of each conversation, with a reply made up.
  std::vector<json::object> scripted_turn(std::string_view model) {
    std::vector<json::object> bodies;
    for (Conversation& conversation : conversations_) {
      add_question(conversation);
      bodies.push_back(request_of(Dialect::openai, model, conversation, kReplyTokens));
      conversation.said.push_back({"assistant", prose_.words(15)});
    }
    return bodies;
  }

 private:
  void add_question(Conversation& conversation) {
    const std::size_t words = conversation.said.empty() ? kFirstWords : kLaterWords;
    conversation.said.push_back({"user", prose_.words(words)});
  }

  Prose prose_;
  std::vector<Conversation> conversations_;
};

struct Totals {
  std::uint64_t prompt = 0;
  std::uint64_t cached = 0;
  double share() const { return static_cast<double>(cached) / static_cast<double>(prompt); }
  std::string text() const { return fmt::format("{} of {}", cached, prompt); }
};

enum class Way : std::uint8_t { direct, openai, messages };

// All conversations on an engine of their own.
Totals cached_on(const Setting& setting, const Folder& folder, Way way) {
  const auto node = node_with_tools(setting, folder, kClients, {});
  Party party{node->endpoint(), Dialect::openai, setting.model, ""};
  if (way == Way::messages) party.dialect = Dialect::messages;
  if (way == Way::direct) {
    const EngineHandle engine = node->engine();
    party = {engine.endpoint(), Dialect::openai, engine.alias, engine.key};
  }
  Talk talk(kClients, kSystemWords, kTools);
  Totals totals;
  for (std::size_t turn = 0; turn < turns_of(setting); ++turn) {
    for (const Reply& reply : talk.turn(party, Order::at_once)) {
      totals.prompt += reply.prompt_tokens;
      totals.cached += reply.cached_tokens;
    }
  }
  node->stop();
  return totals;
}

void measure_cached(const Setting& setting, const Folder& folder) {
  const Totals direct = cached_on(setting, folder, Way::direct);
  for (const Way way : {Way::openai, Way::messages}) {
    const Totals werk = cached_on(setting, folder, way);
    report(
        {"P11",
         fmt::format("cached prompt tokens, Werk / direct: {} clients, {} turns, {} tools{}",
                     kClients, turns_of(setting), kTools, way == Way::messages ? ", Messages" : ""),
         "", single(werk.share() / direct.share()), Better::higher, 0.99, 1,
         fmt::format("shares of all prompt tokens; direct {}, Werk {}", direct.text(),
                     werk.text())});
  }
}

// What the engine gets of what clients send, byte by byte.
void measure_bodies(const Setting& setting, const Folder& folder) {
  make_home(setting, folder, "home", {"m0"});
  const std::filesystem::path record = folder / "bodies";
  const Node node(setting, folder / "home",
                  {"--backend", "llama-cpu", "--parallel", "4", "--log-level", "warn"},
                  {"WERK_LLAMA_SERVER=" + setting.mock, "BENCH_MOCK_RECORD=" + record.string()},
                  folder / "mock.log");
  const Party party{node.endpoint(), Dialect::openai, "m0", ""};
  std::vector<json::object> sent;
  Talk talk(kClients, kSystemWords, kTools);
  for (std::size_t turn = 0; turn < turns_of(setting); ++turn) {
    for (json::object& body : talk.scripted_turn("m0")) {
      body["stream"] = true;
      body["stream_options"] = {{"include_usage", true}};
      body["return_progress"] = true;
      const Answer answer = ask(party.endpoint, party.request(body));
      if (answer.status != 200) throw std::runtime_error("an answer failed: " + answer.body);
      sent.push_back(std::move(body));
    }
  }
  const std::string alias = node.engine().alias;
  std::ifstream file(record);
  std::string line;
  std::size_t equal = 0;
  for (json::object& body : sent) {
    body["model"] = alias;
    if (std::getline(file, line) && line == json::serialize(body)) ++equal;
  }
  report({"P11", "bodies that reach the engine byte for byte, apart from the model's name",
          "bodies", single(static_cast<double>(equal)), Better::equal,
          static_cast<double>(sent.size()), 0,
          fmt::format("of {}; recorded by the mock", sent.size())});
}

struct Case {
  std::string name;
  std::size_t slots;
  std::size_t system_words;  // what the conversations have in common
  std::string engine_words;
};

void measure_slots(const Setting& setting, const Folder& folder, const Case& one) {
  constexpr std::size_t kConversations = 8;
  const std::size_t turns = setting.quick ? 2 : 4;
  const auto node = node_with_tools(setting, folder, one.slots, {}, one.engine_words);
  const Party party{node->endpoint(), Dialect::openai, setting.model, ""};
  Talk talk(kConversations, one.system_words, 0);
  for (std::size_t turn = 1; turn <= turns; ++turn) {
    report_new_tokens("slots",
                      fmt::format("{} slot{}, {}: new prompt tokens in turn {}", one.slots,
                                  one.slots == 1 ? "" : "s", one.name, turn),
                      talk.turn(party, Order::in_turn));
  }
  node->stop();
}

void run(const Goals& goals) {
  const Setting setting = read_setting();
  const Folder folder;
  if (goals.has("P11")) {
    measure_bodies(setting, folder);
    measure_cached(setting, folder);
  }
  if (!goals.has("slots")) return;
  for (const std::size_t slots : {1, 4}) {
    measure_slots(setting, folder, {"little in common", slots, 8, ""});
    measure_slots(setting, folder, {"much in common", slots, 160, ""});
    measure_slots(setting, folder,
                  {fmt::format("much in common, engine with {}", kStrictSlots), slots, 160,
                   std::string(kStrictSlots)});
  }
}

}  // namespace
}  // namespace werk::bench

int main(int count, char** words) {
  return werk::bench::run_main("bench_prompts", count, words, werk::bench::run);
}
