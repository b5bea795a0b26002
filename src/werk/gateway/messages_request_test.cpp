#include "werk/gateway/messages_request.hpp"

#include <gtest/gtest.h>

namespace werk::gateway {
namespace {

using chat::Role;

// A body with these members beside the required ones.
std::string body_with(std::string_view members, std::string_view messages = "") {
  const std::string_view plain = R"([{"role":"user","content":"hi"}])";
  return R"({"model":"m","max_tokens":9,"messages":)" +
         std::string(messages.empty() ? plain : messages) +
         (members.empty() ? "" : "," + std::string(members)) + "}";
}

MessagesRequest read(const std::string& body, PromptEdits edits = PromptEdits::apply) {
  auto request = read_messages_request(body, MessagesPurpose::generate, edits);
  EXPECT_TRUE(request) << body << (request ? "" : request.error().message);
  return request.value_or(MessagesRequest{});
}

// The member at fault, and the code if it is not invalid_request.
std::string fault(const std::string& body, MessagesPurpose purpose = MessagesPurpose::generate) {
  const auto request = read_messages_request(body, purpose);
  if (request) return "none";
  EXPECT_EQ(request.error().origin, Origin::client);
  const bool invalid = request.error().code == ErrorCode::invalid_request;
  return (invalid ? "" : std::string(name_of(request.error().code)) + " ") + request.error().param;
}

std::string show(const chat::Part& part) {
  if (const auto* text = std::get_if<chat::Text>(&part)) return "text:" + text->text;
  if (const auto* image = std::get_if<chat::Image>(&part))
    return "image:" + image->media_type + ":" + image->base64;
  if (const auto* thought = std::get_if<chat::Reasoning>(&part)) return "thought:" + thought->text;
  if (const auto* call = std::get_if<chat::ToolCall>(&part))
    return "call:" + call->id + ":" + call->name + ":" + call->arguments;
  const auto& result = std::get<chat::ToolResult>(part);
  std::string shown = (result.is_error ? "error:" : "result:") + result.call_id;
  for (const auto& each : result.parts) {
    const auto* text = std::get_if<chat::Text>(&each);
    shown += text != nullptr ? "/" + text->text : "/" + std::get<chat::Image>(each).base64;
  }
  return shown;
}

// "user[text:hi] assistant[...]"
std::string show(const chat::Request& request) {
  constexpr std::array<std::string_view, 4> kRoles = {"system", "user", "assistant", "tool"};
  std::string shown;
  for (const chat::Message& message : request.messages) {
    if (!shown.empty()) shown += " ";
    shown += kRoles[static_cast<std::size_t>(message.role)];
    shown += "[";
    for (const chat::Part& part : message.parts) {
      if (shown.back() != '[') shown += " ";
      shown += show(part);
    }
    shown += "]";
  }
  return shown;
}

std::string turns(std::string_view messages, std::string_view members = "") {
  return show(read(body_with(members, messages)).chat);
}

// What one user turn of these blocks becomes.
std::string user_blocks(std::string_view blocks) {
  return turns(R"([{"role":"user","content":[)" + std::string(blocks) + "]}]");
}

TEST(MessagesRequest, MaxTokensIsRequiredExceptForCounting) {
  const std::string body = R"({"model":"m","messages":[{"role":"user","content":"hi"}]})";
  EXPECT_EQ(fault(body), "max_tokens");
  EXPECT_EQ(fault(body, MessagesPurpose::count), "none");
  EXPECT_EQ(fault(R"({"max_tokens":null,"messages":[{"role":"user","content":"hi"}]})"),
            "max_tokens");
  EXPECT_EQ(read(R"({"max_tokens":0,"messages":[{"role":"user","content":"hi"}]})").chat.max_tokens,
            0u);
}

TEST(MessagesRequest, ReadsTheSimpleMembers) {
  const MessagesRequest request =
      read(body_with(R"("stream":true,"temperature":0.7,"top_p":1,"top_k":40,)"
                     R"("stop_sequences":["a","","b"],"metadata":{"user_id":"{\"u\":1}"})"));
  EXPECT_EQ(request.model, "m");
  EXPECT_TRUE(request.stream);
  EXPECT_EQ(request.chat.max_tokens, 9u);
  EXPECT_EQ(request.chat.temperature, 0.7);
  EXPECT_EQ(request.chat.top_p, 1.0);
  EXPECT_EQ(request.chat.top_k, 40u);
  EXPECT_EQ(request.chat.stop_sequences, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(request.chat.user, R"({"u":1})");
  EXPECT_FALSE(read(body_with("")).stream);
}

TEST(MessagesRequest, WrongTypesNameTheirMember) {
  EXPECT_EQ(fault("[]"), "");
  EXPECT_EQ(fault("{"), "");
  EXPECT_EQ(fault(R"({"max_tokens":1})"), "messages");
  EXPECT_EQ(fault(body_with("", "[]")), "messages");
  EXPECT_EQ(fault(body_with("", "{}")), "messages");
  EXPECT_EQ(fault(R"({"model":1,"max_tokens":1,"messages":[]})"), "model");
  EXPECT_EQ(fault(R"({"model":"","max_tokens":1,"messages":[]})"), "model");
  EXPECT_EQ(fault(R"({"max_tokens":-1,"messages":[]})"), "max_tokens");
  EXPECT_EQ(fault(R"({"max_tokens":1.5,"messages":[]})"), "max_tokens");
  EXPECT_EQ(fault(body_with(R"("stream":"yes")")), "stream");
  EXPECT_EQ(fault(body_with(R"("temperature":"1")")), "temperature");
  EXPECT_EQ(fault(body_with(R"("temperature":1e999)")), "temperature");
  EXPECT_EQ(fault(body_with(R"("stop_sequences":"x")")), "stop_sequences");
  EXPECT_EQ(fault(body_with(R"("stop_sequences":["x",1])")), "stop_sequences[1]");
  EXPECT_EQ(fault(body_with(R"("system":1)")), "system");
  EXPECT_EQ(fault(body_with(R"("system":[{"type":"text","text":1}])")), "system[0].text");
  EXPECT_EQ(fault(body_with(R"("tools":{})")), "tools");
  EXPECT_EQ(fault(body_with(R"("tools":[{"name":"f"}])")), "tools[0].input_schema");
  EXPECT_EQ(fault(body_with(R"("tools":[{"name":1,"input_schema":{}}])")), "tools[0].name");
  EXPECT_EQ(fault(body_with(R"("thinking":true)")), "thinking");
  EXPECT_EQ(fault(body_with(R"("metadata":{"user_id":1})")), "metadata.user_id");
  EXPECT_EQ(fault(body_with(R"("output_config":{"format":{"type":"json_schema"}})")),
            "output_config.format.schema");
  EXPECT_EQ(fault(body_with("", R"([1])")), "messages[0]");
  EXPECT_EQ(fault(body_with("", R"([{"content":"a"}])")), "messages[0].role");
  EXPECT_EQ(fault(body_with("", R"([{"role":"wizard","content":"a"}])")), "messages[0].role");
  EXPECT_EQ(fault(body_with("", R"([{"role":"user"}])")), "messages[0].content");
  EXPECT_EQ(fault(body_with("", R"([{"role":"user","content":[{"type":"text"}]}])")),
            "messages[0].content[0].text");
  EXPECT_EQ(fault(body_with("", R"([{"role":"user","content":"a","content":"b"}])")),
            "messages[0].content");
  EXPECT_EQ(fault(body_with(R"("system":"a","system":"b")")), "system");
}

TEST(MessagesRequest, SystemMayStandAnywhere) {
  const std::string_view hi = R"([{"role":"user","content":"hi"}])";
  EXPECT_EQ(turns(hi), "user[text:hi]");
  EXPECT_EQ(turns(hi, R"("system":"s")"), "system[text:s] user[text:hi]");
  EXPECT_EQ(turns(hi, R"("system":null)"), "user[text:hi]");
  EXPECT_EQ(turns(hi, R"("system":[{"type":"text","text":"a","cache_control":{"type":"x"}},)"
                      R"({"type":"text","text":"b"}])"),
            "system[text:a text:b] user[text:hi]");
  EXPECT_EQ(turns(R"([{"role":"system","content":"t"},{"role":"user","content":"hi"},)"
                  R"({"role":"system","content":[{"type":"text","text":"u"}]},)"
                  R"({"role":"user","content":"ho"}])",
                  R"("system":"s")"),
            "system[text:s text:t] user[text:hi] system[text:u] user[text:ho]");
}

TEST(MessagesRequest, NeighboursOfOneRoleAreOneTurn) {
  EXPECT_EQ(turns(R"([{"role":"user","content":"a"},{"role":"user","content":"b"},)"
                  R"({"role":"assistant","content":"c"},{"role":"assistant","content":"d"},)"
                  R"({"role":"user","content":"e"}])"),
            "user[text:a text:b] assistant[text:c text:\n\n text:d] user[text:e]");
}

TEST(MessagesRequest, ATrailingAssistantTurnIsAPrefill) {
  const std::string_view start = R"([{"role":"user","content":"a"},{"role":"assistant","content":)";
  const auto prefill = [&](std::string_view content) {
    return read(body_with("", std::string(start) + std::string(content) + "}]")).chat;
  };
  EXPECT_TRUE(chat::has_prefill(prefill(R"("so")")));
  EXPECT_FALSE(chat::has_prefill(prefill(R"("")"))) << "nothing to continue";
  EXPECT_FALSE(chat::has_prefill(prefill("[]")));
}

TEST(MessagesRequest, AnAssistantTurnKeepsThoughtsTextsAndCalls) {
  EXPECT_EQ(
      turns(R"([{"role":"user","content":"a"},{"role":"assistant","content":[)"
            R"({"type":"thinking","thinking":"hm","signature":"s"},)"
            R"({"type":"redacted_thinking","data":"x"},{"type":"text","text":"b"},)"
            R"({"type":"server_tool_use","id":"s","name":"web_search","input":{}},)"
            R"({"type":"web_search_tool_result","tool_use_id":"s","content":[]},)"
            R"({"type":"invented","x":1},)"
            R"({"type":"tool_use","id":"t1","name":"f","input":{"z": 1.0, "a":[]},"caller":{}},)"
            R"({"type":"tool_use","id":"t2","name":"g","input":null}]},)"
            R"({"role":"user","content":"c"}])"),
      "user[text:a] assistant[thought:hm text:b call:t1:f:{\"z\": 1.0, \"a\":[]} call:t2:g:{}] "
      "user[text:c]");
}

TEST(MessagesRequest, ToolResultsStandBeforeTheRestOfTheirTurn) {
  EXPECT_EQ(turns(R"([{"role":"user","content":[{"type":"text","text":"now"},)"
                  R"({"type":"tool_result","tool_use_id":"a","content":"one",)"
                  R"("cache_control":{}}]},{"role":"user","content":[)"
                  R"({"type":"tool_result","tool_use_id":"b","is_error":true,"content":[)"
                  R"({"type":"text","text":"x"},{"type":"image","source":{"type":"base64",)"
                  R"("media_type":"image/png","data":"AAAA"}},)"
                  R"({"type":"tool_reference","tool_name":"g"},{"type":"text","text":""}]},)"
                  R"({"type":"tool_result","tool_use_id":"c"}]}])"),
            "tool[result:a/one error:b/x/AAAA/g result:c] user[text:now]");
  EXPECT_EQ(user_blocks(R"({"type":"tool_result","tool_use_id":"a","content":""})"),
            "tool[result:a]");
}

TEST(MessagesRequest, ImagesMustBeInTheRequest) {
  const auto image = [](std::string_view source) {
    return body_with("", R"([{"role":"user","content":[{"type":"image","source":)" +
                             std::string(source) + "}]}]");
  };
  const std::string_view good = R"({"type":"base64","media_type":"image/png","data":"aGk="})";
  EXPECT_EQ(show(read(image(good)).chat), "user[image:image/png:aGk=]");
  EXPECT_EQ(fault(image(R"({"type":"url","url":"http://x/"})")),
            "unsupported messages[0].content[0].source.type");
  EXPECT_EQ(fault(image(R"({"type":"file","file_id":"x"})")),
            "unsupported messages[0].content[0].source.type");
  EXPECT_EQ(fault(image(R"({"type":"base64","media_type":"image/svg+xml","data":"aGk="})")),
            "messages[0].content[0].source.media_type");
  for (const std::string_view data : {"", "a", "aGk", "http://x/", "aG=k", "a===", "aGk=\\n"}) {
    const std::string source = R"({"type":"base64","media_type":"image/png","data":")";
    EXPECT_EQ(fault(image(source + std::string(data) + "\"}")),
              data == "aGk" ? "none" : "messages[0].content[0].source.data")
        << data;
  }
}

TEST(MessagesRequest, DocumentsAreText) {
  EXPECT_EQ(user_blocks(R"({"type":"document","title":"T","context":null,"source":)"
                        R"({"type":"text","media_type":"text/plain","data":"body"}})"),
            "user[text:T\n\nbody]");
  EXPECT_EQ(user_blocks(R"({"type":"document","source":{"type":"base64",)"
                        R"("media_type":"text/plain","data":"aMOpIQ=="}})"),
            "user[text:hé!]");
  EXPECT_EQ(user_blocks(R"({"type":"document","source":{"type":"content","content":[)"
                        R"({"type":"text","text":"x"}]}})"),
            "user[text:x]");
  EXPECT_EQ(user_blocks(R"({"type":"search_result","source":"s","title":"t",)"
                        R"("content":[{"type":"text","text":"x"}]})"),
            "user[text:t\n\ns\n\n text:x]");
  const auto document = [](std::string_view source) {
    return fault(body_with("", R"([{"role":"user","content":[{"type":"document","source":)" +
                                   std::string(source) + "}]}]"));
  };
  EXPECT_EQ(document(R"({"type":"base64","media_type":"application/pdf","data":"AAAA"})"),
            "unsupported messages[0].content[0].source.media_type");
  EXPECT_EQ(document(R"({"type":"base64","media_type":"text/plain","data":"/w=="})"),
            "messages[0].content[0].source.data");
  EXPECT_EQ(document(R"({"type":"url","url":"https://x/"})"),
            "unsupported messages[0].content[0].source.type");
}

TEST(MessagesRequest, BlocksThatWouldLoseMeaningAreRefused) {
  const auto block = [](std::string_view role, std::string_view text) {
    return fault(body_with(
        "", R"([{"role":")" + std::string(role) + R"(","content":[)" + std::string(text) + "]}]"));
  };
  EXPECT_EQ(block("user", R"({"type":"video"})"), "unsupported messages[0].content[0].type");
  EXPECT_EQ(block("user", R"({"type":"tool_use","id":"a","name":"f","input":{}})"),
            "messages[0].content[0].type");
  EXPECT_EQ(block("assistant", R"({"type":"tool_result","tool_use_id":"a"})"),
            "messages[0].content[0].type");
  EXPECT_EQ(block("system", R"({"type":"image"})"), "messages[0].content[0].type");
  EXPECT_EQ(block("assistant", R"({"type":"tool_use","id":"a","name":"f","input":[]})"),
            "messages[0].content[0].input");
  EXPECT_EQ(block("user", R"({"type":"tool_result","content":"a"})"),
            "messages[0].content[0].tool_use_id");
  EXPECT_EQ(block("user", R"({"type":"container_upload","file_id":"f"})"), "none");
}

constexpr std::string_view kTools =
    R"("tools":[{"name":"f","description":"d","input_schema":{"z":1.0,  "a":{"$ref":"#"}},)"
    R"("defer_loading":true,"cache_control":{"type":"ephemeral"},"strict":null},)"
    R"({"type":"custom","name":"g","input_schema":{}},)"
    R"({"type":"web_search_20250305","name":"web_search","max_uses":5},{"type":"mcp_toolset"}])";

TEST(MessagesRequest, ToolsKeepTheirSchemasByteForByte) {
  const MessagesRequest request = read(body_with(kTools));
  ASSERT_EQ(request.chat.tools.size(), 2u);
  EXPECT_EQ(request.chat.tools[0].name, "f");
  EXPECT_EQ(request.chat.tools[0].description, "d");
  EXPECT_EQ(request.chat.tools[0].parameters, R"({"z":1.0,  "a":{"$ref":"#"}})");
  EXPECT_EQ(request.chat.tools[1].name, "g");
  EXPECT_EQ(request.dropped_server_tools, 2u);
}

TEST(MessagesRequest, ToolChoice) {
  const auto choice = [](std::string_view text) {
    return body_with(std::string(kTools) + R"(,"tool_choice":)" + std::string(text));
  };
  const auto use = [&](std::string_view text) { return read(choice(text)).chat.tool_choice.use; };
  EXPECT_EQ(read(body_with(kTools)).chat.tool_choice.use, chat::ToolUse::unset);
  EXPECT_EQ(use(R"({"type":"auto"})"), chat::ToolUse::automatic);
  EXPECT_EQ(use(R"({"type":"any"})"), chat::ToolUse::required);
  EXPECT_EQ(use(R"({"type":"none"})"), chat::ToolUse::none);
  EXPECT_EQ(use("null"), chat::ToolUse::unset);
  const chat::Request named =
      read(choice(R"({"type":"tool","name":"g","disable_parallel_tool_use":true})")).chat;
  EXPECT_EQ(named.tool_choice.use, chat::ToolUse::named);
  EXPECT_EQ(named.tool_choice.name, "g");
  EXPECT_EQ(named.parallel_tool_calls, false);
  EXPECT_EQ(fault(choice(R"({"type":"tool","name":"web_search"})")), "tool_choice.name");
  EXPECT_EQ(fault(choice(R"({"type":"tool","name":"h"})")), "tool_choice.name");
  EXPECT_EQ(fault(choice(R"({"type":"sometimes"})")), "tool_choice.type");
  const chat::Request dropped =
      read(body_with(R"("tools":[{"type":"bash_20250124","name":"bash"}],)"
                     R"("tool_choice":{"type":"any"})"))
          .chat;
  EXPECT_EQ(dropped.tool_choice.use, chat::ToolUse::unset);
}

TEST(MessagesRequest, ThinkingAndOutput) {
  const auto chat = [](std::string_view members) { return read(body_with(members)).chat; };
  EXPECT_EQ(chat("").reasoning, chat::ReasoningSwitch::unset);
  EXPECT_EQ(chat(R"("thinking":{"type":"disabled"})").reasoning, chat::ReasoningSwitch::off);
  EXPECT_EQ(chat(R"("thinking":{"type":"adaptive"})").reasoning, chat::ReasoningSwitch::adaptive);
  EXPECT_EQ(chat(R"("thinking":{"type":"some day"})").reasoning, chat::ReasoningSwitch::unset);
  const chat::Request on = chat(R"("thinking":{"type":"enabled","budget_tokens":1024})");
  EXPECT_EQ(on.reasoning, chat::ReasoningSwitch::on);
  EXPECT_EQ(on.reasoning_budget_tokens, 1024u);
  const auto effort = [&](std::string_view word) {
    return chat(R"("output_config":{"effort":")" + std::string(word) + "\"}").effort;
  };
  EXPECT_EQ(effort("low"), chat::Effort::low);
  EXPECT_EQ(effort("medium"), chat::Effort::medium);
  EXPECT_EQ(effort("max"), chat::Effort::high);
  EXPECT_EQ(effort("heroic"), chat::Effort::unset);
  const std::string_view format = R"({"type":"json_schema","schema":{"b":1, "a":2}})";
  for (const std::string& members : {R"("output_config":{"format":)" + std::string(format) + "}",
                                     R"("output_format":)" + std::string(format)})
    EXPECT_EQ(chat(members).response_schema, R"({"b":1, "a":2})");
  EXPECT_EQ(fault(body_with(R"("output_config":{"format":{"type":"poem"}})")),
            "unsupported output_config.format.type");
}

TEST(MessagesRequest, UnknownMembersAreDroppedAtEveryLevel) {
  const std::string x = R"("invented":{"deep":[1]})";
  const std::string body =
      R"({"model":"m","max_tokens":9,"context_management":{"edits":[]},"betas":["b"],)"
      R"("mcp_servers":[{}],"container":"c","service_tier":"auto","inference_geo":"x",)" +
      x + R"(,"system":[{"type":"text","text":"s","citations":null,)" + x + R"(}],)" +
      R"("messages":[{"role":"user",)" + x + R"(,"content":[{"type":"text","text":"a",)" + x +
      R"(},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA",)" + x +
      R"(}},{"type":"tool_result","tool_use_id":"t",)" + x + R"(}]}],"tools":[{"name":"f",)" + x +
      R"(,"input_schema":{}}],"tool_choice":{"type":"auto",)" + x + R"(},"thinking":{"type":)" +
      R"("adaptive","display":"x",)" + x + R"(},"output_config":{"effort":"low",)" + x +
      R"(},"metadata":{)" + x + "}}";
  EXPECT_EQ(show(read(body).chat),
            "system[text:s] tool[result:t] user[text:a image:image/png:AAAA]");
}

constexpr std::string_view kHeader = "x-anthropic-billing-header: cc_version=1.a2b; cch=123;";

TEST(MessagesRequest, TheAttributionLineIsTakenOut) {
  const std::string header(kHeader);
  const auto system = [](const std::string& json, PromptEdits edits = PromptEdits::apply) {
    const MessagesRequest request = read(body_with("\"system\":" + json), edits);
    return std::string(request.edited ? "edited " : "") + show(request.chat);
  };
  const std::string user = "user[text:hi]";
  const std::string blocks =
      R"([{"type":"text","text":")" + header + R"("},{"type":"text","text":"You are."}])";
  EXPECT_EQ(system(blocks), "edited system[text:You are.] " + user);
  EXPECT_EQ(system(blocks, PromptEdits::none), "system[text:" + header + " text:You are.] " + user);
  EXPECT_EQ(system("\"" + header + R"(\n\nYou are.\n")"), "edited system[text:You are.\n] " + user);
  EXPECT_EQ(system("\"" + header + "\""), "edited " + user);
  EXPECT_EQ(system("\"About " + header + "\""), "system[text:About " + header + "] " + user);
  const std::string said = R"([{"role":"user","content":")" + header + R"("}])";
  EXPECT_EQ(turns(said), "user[text:" + header + "]") << "what a user says stays";
}

TEST(MessagesRequest, ConversationsThatDifferOnlyInTheAttributionAreEqual) {
  const auto system = [](std::string_view hash) {
    const MessagesRequest request =
        read(body_with(R"("system":[{"type":"text","text":"x-anthropic-billing-header: cch=)" +
                       std::string(hash) + R"(;"},{"type":"text","text":"s"}])"));
    return show(request.chat);
  };
  EXPECT_EQ(system("1"), system("22222"));
}

TEST(MessagesRequest, MayBeFedInAnyPieces) {
  const std::string body = body_with(R"("system":"é😀")");
  for (std::size_t cut = 0; cut <= body.size(); ++cut) {
    MessagesRequestReader reader(MessagesPurpose::generate);
    ASSERT_TRUE(reader.feed(std::string_view(body).substr(0, cut)));
    ASSERT_TRUE(reader.feed(std::string_view(body).substr(cut)));
    EXPECT_EQ(show(reader.finish(body)->chat), "system[text:é😀] user[text:hi]");
  }
  MessagesRequestReader broken(MessagesPurpose::generate);
  EXPECT_FALSE(broken.feed("{]"));
}

}  // namespace
}  // namespace werk::gateway
