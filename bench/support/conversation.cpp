#include "bench/support/conversation.hpp"

#include <fmt/format.h>

#include <array>
#include <fstream>
#include <stdexcept>

#include "bench/support/report.hpp"

namespace werk::bench {
namespace {

namespace json = boost::json;

constexpr std::array<std::string_view, 64> kWords{
    "river",  "stone",   "the",    "of",      "a",      "light",  "house",  "north",
    "wind",   "green",   "small",  "table",   "under",  "over",   "with",   "and",
    "paper",  "water",   "glass",  "road",    "old",    "new",    "first",  "second",
    "open",   "closed",  "window", "door",    "garden", "letter", "in",     "to",
    "from",   "between", "bread",  "salt",    "field",  "hill",   "bridge", "boat",
    "slow",   "quick",   "winter", "summer",  "night",  "day",    "hand",   "voice",
    "number", "line",    "short",  "long",    "white",  "black",  "left",   "right",
    "metal",  "wood",    "sound",  "silence", "is",     "was",    "makes",  "keeps"};

// ChatML with a list of tools, like what models with tools bring along.
constexpr std::string_view kTemplate =
    "<|im_start|>system\n"
    "{% if messages[0].role == 'system' %}{{ messages[0].content }}{% endif %}"
    "{% if tools %}\n\nTools:\n"
    "{% for tool in tools %}{{ tool | tojson }}\n{% endfor %}"
    "Answer a call as <tool_call>{\"name\": NAME, \"arguments\": OBJECT}</tool_call>"
    "{% endif %}<|im_end|>\n"
    "{% for message in messages %}{% if message.role != 'system' or not loop.first %}"
    "<|im_start|>{{ message.role }}\n{{ message.content or '' }}"
    "{% if message.tool_calls %}{% for call in message.tool_calls %}"
    "\n<tool_call>{\"name\": \"{{ call.function.name }}\", "
    "\"arguments\": {{ call.function.arguments | tojson }}}</tool_call>"
    "{% endfor %}{% endif %}<|im_end|>\n"
    "{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

const json::value& member(const json::value& value, std::initializer_list<std::string_view> path) {
  const json::value* at = &value;
  for (const std::string_view name : path) {
    const json::object* object = at->if_object();
    at = object == nullptr ? nullptr : object->if_contains(name);
    if (at == nullptr) throw std::runtime_error("an answer lacks " + std::string(name));
  }
  return *at;
}

std::uint64_t number(const json::value& value, std::initializer_list<std::string_view> path) {
  return member(value, path).to_number<std::uint64_t>();
}

}  // namespace

std::string Prose::words(std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    if (!text.empty()) text.push_back(' ');
    text += kWords[state_ >> 58];
  }
  return text;
}

json::array tool_list(Dialect dialect, std::size_t count) {
  Prose prose(77);
  json::array tools;
  for (std::size_t i = 0; i < count; ++i) {
    const json::object parameters{
        {"type", "object"},
        {"properties",
         {{"path", {{"type", "string"}, {"description", prose.words(8)}}},
          {"limit", {{"type", "integer"}, {"description", prose.words(6)}}}}},
        {"required", json::array{"path"}}};
    const std::string name = fmt::format("tool_{}", i);
    const std::string description = prose.words(30);
    if (dialect == Dialect::messages) {
      tools.push_back({{"name", name}, {"description", description}, {"input_schema", parameters}});
    } else {
      tools.push_back(
          {{"type", "function"},
           {"function",
            {{"name", name}, {"description", description}, {"parameters", parameters}}}});
    }
  }
  return tools;
}

json::object request_of(Dialect dialect, std::string_view model, const Conversation& conversation,
                        std::uint64_t max_tokens) {
  json::object body{{"model", model}, {"max_tokens", max_tokens}, {"temperature", 0}};
  json::array messages;
  if (dialect == Dialect::messages) {
    body["system"] = conversation.system;
  } else {
    messages.push_back({{"role", "system"}, {"content", conversation.system}});
  }
  for (const Said& said : conversation.said) {
    messages.push_back({{"role", said.role}, {"content", said.text}});
  }
  body["messages"] = std::move(messages);
  if (conversation.tools > 0) body["tools"] = tool_list(dialect, conversation.tools);
  return body;
}

Reply read_reply(Dialect dialect, const Answer& answer) {
  if (answer.status != 200) {
    throw std::runtime_error(fmt::format("status {}: {}", answer.status, answer.body));
  }
  const json::value body = json::parse(answer.body);
  Reply reply;
  if (dialect == Dialect::messages) {
    reply.cached_tokens = number(body, {"usage", "cache_read_input_tokens"});
    reply.prompt_tokens = number(body, {"usage", "input_tokens"}) + reply.cached_tokens;
    for (const json::value& block : member(body, {"content"}).as_array()) {
      if (member(block, {"type"}).as_string() == "text") {
        reply.text += member(block, {"text"}).as_string();
      }
    }
    return reply;
  }
  reply.prompt_tokens = number(body, {"usage", "prompt_tokens"});
  reply.cached_tokens = number(body, {"usage", "prompt_tokens_details", "cached_tokens"});
  const json::value& choice = member(body, {"choices"}).as_array().at(0);
  const json::value& content = member(choice, {"message", "content"});
  if (content.is_string()) reply.text = content.as_string();
  return reply;
}

void report_new_tokens(const std::string& goal, const std::string& name,
                       const std::vector<Reply>& turn) {
  std::vector<Round> fresh;
  std::vector<double> cached;
  std::vector<double> prompt;
  for (const Reply& reply : turn) {
    fresh.push_back({static_cast<double>(reply.new_tokens()), 1});
    cached.push_back(static_cast<double>(reply.cached_tokens));
    prompt.push_back(static_cast<double>(reply.prompt_tokens));
  }
  report({goal, name, "tokens", summarize(fresh), Better::none, 0, 0,
          fmt::format("{:.0f} cached of {:.0f}", median(cached), median(prompt)), 1});
}

std::unique_ptr<Node> node_with_tools(const Setting& setting, const Folder& folder,
                                      std::size_t slots, const std::vector<std::string>& arguments,
                                      const std::string& engine_words) {
  const std::filesystem::path file = folder / "tools.jinja";
  std::ofstream(file) << kTemplate;
  std::vector<std::string> environment{
      fmt::format("WERK_LLAMA_ARGS=--chat-template-file '{}' {}", file.string(), engine_words)};
  if (!setting.real_engine.empty()) {
    environment.push_back("WERK_LLAMA_SERVER=" + setting.real_engine);
  }
  std::vector<std::string> words{"--backend",       "llama-cpu",
                                 "--parallel",      std::to_string(slots),
                                 "--ctx-size",      std::to_string(kContextTokens),
                                 "--threads",       "1",
                                 "--threads-batch", "1",
                                 "--log-level",     "warn"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  auto node =
      std::make_unique<Node>(setting, setting.home, words, environment, folder / "node.log");
  const Party party{node->endpoint(), Dialect::openai, setting.model, ""};
  const Conversation first{"", 0, {{"user", "Hi"}}};
  read_reply(
      Dialect::openai,
      ask(party.endpoint, party.request(request_of(Dialect::openai, setting.model, first, 1))));
  return node;
}

}  // namespace werk::bench
