// bench_agent: `edits`. Requests in the shape of Claude Code's, whose system prompt begins with a
// line that is another one for each first prompt: how many prompt tokens the engine must read in
// each turn when the node takes that line out, and when it leaves it. Several conversations take
// turns on one slot; their texts are made up, and about an eighth as long as the client's own.
// Tokens are counted, nothing is timed.
#include <fmt/format.h>

#include <boost/json.hpp>
#include <string>
#include <vector>

#include "bench/support/conversation.hpp"
#include "bench/support/main.hpp"
#include "bench/support/report.hpp"

namespace werk::bench {
namespace {

namespace json = boost::json;

constexpr std::size_t kConversations = 4;
constexpr std::size_t kTools = 4;
constexpr std::uint64_t kReplyTokens = 4;

std::size_t turns_of(const Setting& setting) { return setting.quick ? 2 : 4; }

json::object text_block(std::string_view text) { return {{"type", "text"}, {"text", text}}; }

// A braced list of one would be the one.
json::array list_of(const std::vector<json::object>& objects) {
  return json::array(objects.begin(), objects.end());
}

json::object cached(json::object block) {
  block["cache_control"] = {{"type", "ephemeral"}};
  return block;
}

// One session of the client, turn by turn: a prompt, a call with its result, an answer and the next
// prompt, a call with its result.
class Session {
 public:
  explicit Session(std::size_t number) : number_(number), prose_(100 + number) {}

  json::object next_request(std::string_view model) {
    ++turn_;
    if (turn_ == 1) {
      messages_.push_back({{"role", "user"},
                           {"content", list_of({text_block(Prose(3).words(60)),
                                                cached(text_block(prose_.words(25)))})}});
      messages_.push_back({{"role", "system"}, {"content", Prose(4).words(20)}});
    } else if (turn_ % 2 == 0) {
      call_with_result();
    } else {
      messages_.push_back(
          {{"role", "assistant"}, {"content", list_of({text_block(prose_.words(25))})}});
      messages_.push_back(
          {{"role", "user"}, {"content", list_of({cached(text_block(prose_.words(25)))})}});
    }
    return request(model);
  }

 private:
  void call_with_result() {
    const std::string id = fmt::format("toolu_{:04}{:04}", number_, turn_);
    const json::object call{{"type", "tool_use"},
                            {"id", id},
                            {"name", "tool_1"},
                            {"input", {{"path", "src/main.cpp"}, {"limit", 40}}}};
    messages_.push_back(
        {{"role", "assistant"}, {"content", list_of({text_block(prose_.words(10)), call})}});
    const json::object result{{"type", "tool_result"},
                              {"tool_use_id", id},
                              {"content", list_of({text_block(prose_.words(60))})},
                              {"is_error", false}};
    messages_.push_back({{"role", "user"}, {"content", list_of({cached(result)})}});
  }

  json::object request(std::string_view model) const {
    const std::string attribution = fmt::format(
        "x-anthropic-billing-header: cc_version=2.1.332.{0:03x}; cc_entrypoint=cli; cch={0:05x};",
        0x5a1 + 7919 * number_);
    const std::string session =
        fmt::format("{{\"device_id\":\"0\",\"session_id\":\"{}\"}}", number_);
    json::array tools = tool_list(Dialect::messages, kTools);
    tools.back().as_object()["defer_loading"] = true;
    return {{"model", model},
            {"messages", messages_},
            {"system", list_of({text_block(attribution), cached(text_block(Prose(1).words(12))),
                                cached(text_block(Prose(2).words(220)))})},
            {"tools", std::move(tools)},
            {"metadata", {{"user_id", session}}},
            {"max_tokens", kReplyTokens},
            {"thinking", {{"type", "adaptive"}}},
            {"context_management",
             {{"edits", list_of({{{"type", "clear_thinking_20251015"}, {"keep", "all"}}})}}},
            {"output_config", {{"effort", "medium"}}}};
  }

  std::size_t number_;
  std::size_t turn_ = 0;
  Prose prose_;
  json::array messages_;
};

// All sessions in turn; how many tokens the engine read in all.
double measure(const Setting& setting, const Folder& folder, const std::string& mode,
               const std::string& engine_words, const std::string& with) {
  const auto node = node_with_tools(setting, folder, 1, {"--prompt-edits", mode}, engine_words);
  const Party party{node->endpoint(), Dialect::messages, setting.model, ""};
  std::vector<Session> sessions;
  for (std::size_t i = 0; i < kConversations; ++i) sessions.emplace_back(i);
  double all = 0;
  for (std::size_t turn = 1; turn <= turns_of(setting); ++turn) {
    std::vector<Reply> replies;
    for (Session& session : sessions) {
      const std::string request = party.request(session.next_request(party.model));
      replies.push_back(read_reply(party.dialect, ask(party.endpoint, request)));
      all += static_cast<double>(replies.back().new_tokens());
    }
    report_new_tokens(
        "edits", fmt::format("new prompt tokens in turn {}, --prompt-edits {}{}", turn, mode, with),
        replies);
  }
  node->stop();
  return all;
}

void run(const Goals&) {
  const Setting setting = read_setting();
  const Folder folder;
  const std::string strictly = fmt::format(", engine with {}", kStrictSlots);
  const double with = measure(setting, folder, "on", "", "");
  const double strict = measure(setting, folder, "on", std::string(kStrictSlots), strictly);
  const double without = measure(setting, folder, "off", "", "");
  const auto report_ratio = [&](const std::string& how, double read) {
    report({"edits", "prompt tokens the engine reads, on / off" + how, "", single(read / without),
            Better::none, 0, 0,
            fmt::format("{:.0f} and {:.0f} in {} conversations of {} turns on one slot", read,
                        without, kConversations, turns_of(setting))});
  };
  report_ratio("", with);
  report_ratio("; on: " + strictly.substr(2), strict);
}

}  // namespace
}  // namespace werk::bench

int main(int count, char** words) {
  return werk::bench::run_main("bench_agent", count, words, werk::bench::run);
}
