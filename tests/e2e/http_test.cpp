// The node's HTTP surface from the outside: status routes beside many streams, names, keys,
// framing, kept connections, methods, limits, and what bad input gets.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "tests/e2e/chat_answer.hpp"
#include "tests/e2e/test_node.hpp"

namespace werk::test {
namespace {

namespace json = boost::json;

using Clock = std::chrono::steady_clock;

std::string code_of(HttpCall& call) { return error_text(read_whole(call.whole_body()), "code"); }
std::string message_of(HttpCall& call) {
  return error_text(read_whole(call.whole_body()), "message");
}

// ---- health

TEST(Status, RoutesAnswerPromptlyBesideSixtyFourSlowStreams) {
  TestNode node({.engine = {{"reply", {{"gated", true}}}}, .arguments = {"--parallel", "64"}});
  std::vector<HttpCall> streams;
  std::vector<EngineEvent> generations;
  for (int i = 0; i < 64; ++i) streams.push_back(node.chat("a", R"("stream":true)"));
  for (int i = 0; i < 64; ++i) generations.push_back(node.generation());
  std::chrono::microseconds longest{};
  for (int i = 0; i < 10; ++i) {
    for (const char* route : {"/health", "/v1/models", "/readyz", "/werk/v1/observability"}) {
      const auto before = Clock::now();
      HttpCall call = node.get(route);
      EXPECT_EQ(call.status(), 200) << route;
      call.whole_body();
      longest = std::max(
          longest, std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - before));
    }
  }
  std::printf("slowest status answer beside 64 streams: %.2f ms\n",
              static_cast<double>(longest.count()) / 1000);
  EXPECT_LT(longest, std::chrono::seconds(2));
  for (const EngineEvent& generation : generations) {
    node.engines().finish(generation.engine, generation.request());
  }
  for (HttpCall& stream : streams) EXPECT_TRUE(read_stream(stream.whole_body()).done);
}

// ---- names

std::string percent_encoded(std::string_view text) {
  std::string out;
  for (const char c : text) {
    std::array<char, 4> hex{};
    std::snprintf(hex.data(), hex.size(), "%%%02X", static_cast<unsigned char>(c));
    out += hex.data();
  }
  return out;
}

TEST(ModelNames, EveryListedIdCanBeRetrievedAndUsed) {
  const std::vector<std::string> ids = {"org/model:7b", "a+b", "mein modell", "größe-日本",
                                        "x_y.z-1"};
  std::vector<TestModel> models;
  for (const std::string& id : ids) models.push_back({id});
  TestNode node({.models = models});
  HttpCall list = node.get("/v1/models");
  std::vector<std::string> listed;
  const json::value page = json::parse(list.whole_body());
  for (const json::value& model : page.at("data").as_array()) {
    listed.emplace_back(model.at("id").as_string());
  }
  EXPECT_EQ(listed.size(), ids.size());
  for (const std::string& id : ids) {
    SCOPED_TRACE(id);
    EXPECT_NE(std::ranges::find(listed, id), listed.end());
    std::vector<std::string> spellings{percent_encoded(id)};
    const bool fits_a_target = std::ranges::all_of(id, [](char c) { return c > ' ' && c < 0x7F; });
    if (fits_a_target) spellings.push_back(id);
    for (const std::string& spelling : spellings) {
      HttpCall one = node.get("/v1/models/" + spelling);
      EXPECT_EQ(one.status(), 200) << one.whole_body();
      EXPECT_EQ(json::parse(one.whole_body()).at("id").as_string(), id);
    }
    HttpCall call = node.chat(id, R"("max_tokens":1)");
    EXPECT_EQ(call.status(), 200) << call.whole_body();
    EXPECT_EQ(json::parse(call.whole_body()).at("model").as_string(), id);
  }
}

TEST(ModelNames, AnUnknownOneIsNotFoundAndNearOnesAreNamed) {
  TestNode node({.models = {{"smollm2"}}});
  HttpCall chat = node.chat("smolm2");
  EXPECT_EQ(chat.status(), 404);
  EXPECT_EQ(code_of(chat), "model_not_found");
  EXPECT_NE(message_of(chat).find("smollm2"), std::string::npos);
  HttpCall one = node.get("/v1/models/org%2Fnothing");
  EXPECT_EQ(one.status(), 404);
  EXPECT_EQ(code_of(one), "model_not_found");
}

TEST(ModelNames, ABodyWithoutOneUsesTheDefaultOrIsRefused) {
  const std::string body = R"({"messages":[{"role":"user","content":"x"}]})";
  TestNode with({.arguments = {"--model", "a"}});
  HttpCall served = chat(with.port(), body);
  EXPECT_EQ(served.status(), 200) << served.whole_body();
  TestNode without({});
  HttpCall refused = chat(without.port(), body);
  EXPECT_EQ(refused.status(), 400);
  EXPECT_NE(message_of(refused).find("--model"), std::string::npos);
}

// ---- who may ask

TEST(Keys, EitherHeaderOpensEveryRouteAndNoKeyReachesTheEngineOrTheLog) {
  TestNode node({.arguments = {"--log-level", "trace"}, .environment = {"WERK_API_KEY=Sesame-42"}});
  const std::vector<std::string> right = {"Authorization: Bearer Sesame-42",
                                          "authorization: bearer Sesame-42", "X-API-Key: Sesame-42",
                                          "x-api-key: Sesame-42"};
  const std::vector<std::string> wrong = {"Authorization: Bearer sesame-42", "X-API-Key: Sesame-4",
                                          "X-API-Key: Sesame-422"};
  for (const char* route : {"/v1/models", "/v1/models/a", "/werk/v1/observability"}) {
    for (const std::string& header : right) EXPECT_EQ(node.get(route, {header}).status(), 200);
    for (const std::string& header : wrong) EXPECT_EQ(node.get(route, {header}).status(), 401);
    HttpCall none = node.get(route);
    EXPECT_EQ(none.status(), 401);
    EXPECT_EQ(code_of(none), "invalid_api_key");
  }
  for (const char* route : {"/", "/health", "/livez", "/readyz"}) {
    EXPECT_EQ(node.get(route).status(), 200) << route;
  }
  const auto ask = [&](const std::vector<std::string>& headers) {
    return HttpCall(node.port(), "POST", "/v1/chat/completions", chat_body("a"), headers);
  };
  HttpCall refused = ask({});
  EXPECT_EQ(refused.status(), 401) << refused.whole_body();
  EXPECT_EQ(node.engines().count("spawned"), 0u);
  for (const std::string& header : right) EXPECT_EQ(ask({header}).status(), 200);
  for (const EngineEvent& event : node.engines().all("request")) {
    EXPECT_EQ(json::serialize(event.all).find("Sesame"), std::string::npos);
  }
  const EngineEvent spawned = node.engines().expect("spawned");
  EXPECT_EQ(json::serialize(spawned.all).find("Sesame"), std::string::npos);
  EXPECT_EQ(node.process().log().find("Sesame"), std::string::npos);
}

TEST(Hosts, OnlyLoopbackNamesAndAllowedOnesAreServedWithoutAKey) {
  TestNode node({.arguments = {"--allow-host", "werk.lan"}});
  for (const char* host : {"localhost", "127.0.0.1:80", "[::1]:11434", "werk.lan", "WERK.LAN:80"}) {
    EXPECT_EQ(node.get("/v1/models", {std::string("Host: ") + host}).status(), 200) << host;
  }
  for (const char* host : {"evil.example", "localhost.evil.example", "127.0.0.1.nip.io", ""}) {
    HttpCall call = node.get("/v1/models", {std::string("Host: ") + host});
    EXPECT_EQ(call.status(), 403) << host;
  }
}

// ---- framing

TEST(Framing, ChunkedBodiesWithTinyChunksExtensionsAndTrailersAreRead) {
  TestNode node({});
  const std::string body = chat_body("a");
  std::string request =
      "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n"
      "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (const char c : body) request += std::string("1;name=\"v\"\r\n") + c + "\r\n";
  request += "0\r\nX-Trailer: yes\r\n\r\n";
  HttpCall call(node.port(), request);
  EXPECT_EQ(call.status(), 200) << call.whole_body();
  const EngineEvent generation = node.generation();
  const json::object& headers = generation.all.at("headers").as_object();
  EXPECT_FALSE(headers.contains("transfer-encoding")) << "one framing on the engine's side";
  EXPECT_EQ(headers.at("content-length").as_string(),
            std::to_string(generation.text("body").size()));
}

TEST(Framing, ABodyWithTwoLengthsIsRefused) {
  TestNode node({});
  HttpCall call(node.port(),
                "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n"
                "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
  EXPECT_EQ(call.status(), 400);
}

TEST(Framing, AClientOfHttp10GetsAnAnswerThatEndsWithTheConnection) {
  TestNode node({});
  const std::string body = chat_body("a", R"("stream":true)");
  HttpCall call(node.port(),
                "POST /v1/chat/completions HTTP/1.0\r\nHost: localhost\r\n"
                "Content-Length: " +
                    std::to_string(body.size()) + "\r\n\r\n" + body);
  EXPECT_EQ(call.status(), 200);
  EXPECT_EQ(call.header("Transfer-Encoding"), "");
  EXPECT_TRUE(read_stream(call.whole_body()).done);
  EXPECT_EQ(call.end(), BodyEnd::proper);
}

// ---- kept connections to the engine

TEST(EngineConnections, ThatTheEngineClosedAreReplacedWithoutTheClientNoticing) {
  TestNode node({});
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(node.chat("a").status(), 200);
    node.engines().send(0, {{"do", "close_idle"}});
    node.engines().expect("idle_closed");
    EXPECT_EQ(node.chat("a").status(), 200);
  }
  EXPECT_EQ(node.generations(), 6u) << "nothing was done twice";
  EXPECT_EQ(node.spawned(), 1u);
}

TEST(EngineConnections, ThatServeOneRequestEachAreEnough) {
  TestNode node({.engine = {{"requests_per_connection", 1}}});
  for (int i = 0; i < 4; ++i) EXPECT_EQ(node.chat("a").status(), 200);
  EXPECT_EQ(node.generations(), 4u);
}

// ---- methods and routes

TEST(Routes, HeadIsGetWithoutABody) {
  TestNode node({});
  for (const char* route : {"/", "/health", "/livez", "/readyz", "/v1/models", "/v1/models/a",
                            "/werk/v1/observability"}) {
    SCOPED_TRACE(route);
    HttpCall get = node.get(route);
    HttpCall head(node.port(), "HEAD", route);
    EXPECT_EQ(head.status(), 200);
    EXPECT_EQ(head.header("Content-Type"), get.header("Content-Type"));
    const std::string length = head.header("Content-Length");
    if (std::string_view(route) == "/werk/v1/observability") {
      // A living page: its ages and bytes of memory may grow by a digit between the two calls.
      EXPECT_GT(std::strtoull(length.c_str(), nullptr, 10), 0u);
    } else {
      EXPECT_EQ(length, get.header("Content-Length"));
    }
    EXPECT_EQ(head.whole_body(), "");
    EXPECT_FALSE(get.whole_body().empty());
  }
}

TEST(Routes, AWrongMethodNamesTheRightOnesAndAWrongRouteTheLikelyOneAndNothingLoads) {
  TestNode node({});
  HttpCall get = node.get("/v1/chat/completions");
  EXPECT_EQ(get.status(), 405);
  EXPECT_NE(get.header("Allow").find("POST"), std::string::npos);
  EXPECT_EQ(code_of(get), "method_not_allowed");
  HttpCall remove(node.port(), "DELETE", "/v1/models");
  EXPECT_EQ(remove.status(), 405);
  EXPECT_NE(remove.header("Allow").find("GET"), std::string::npos);
  for (const char* route :
       {"/v1/v1/chat/completions", "/chat/completions", "//v1//chat/completions/",
        "/api/v1/chat/completions", "/v1/chat/completion"}) {
    HttpCall call(node.port(), "POST", route, chat_body("a"));
    EXPECT_EQ(call.status(), 404) << route;
    EXPECT_EQ(code_of(call), "route_not_found");
    EXPECT_NE(message_of(call).find("did you mean /v1/chat/completions?"), std::string::npos)
        << message_of(call);
  }
  EXPECT_EQ(node.spawned(), 0u);
}

TEST(Routes, TheRequestIdOfTheClientComesBackAndStandsInTheLog) {
  TestNode node({});
  HttpCall given(node.port(), "POST", "/v1/chat/completions", chat_body("a"),
                 {"X-Request-Id: trace-me-7"});
  EXPECT_EQ(given.header("X-Request-Id"), "trace-me-7");
  given.whole_body();
  node.process().wait_for_line("trace-me-7");
  HttpCall made = node.get("/health");
  EXPECT_TRUE(made.header("X-Request-Id").starts_with("req_"));
  HttpCall failed(node.port(), "GET", "/nothing", {}, {"X-Request-Id: trace-me-8"});
  EXPECT_EQ(failed.header("X-Request-Id"), "trace-me-8");
}

// ---- bad input

TEST(BadInput, ABodyOverTheLimitIsRefusedByItsLengthAndByItsBytes) {
  TestNode node({.environment = {"WERK_API_BODY_LIMIT_BYTES=2048"}});
  const std::string large = chat_body("a", R"("user":")" + std::string(4000, 'x') + "\"");
  HttpCall told = chat(node.port(), large);
  EXPECT_EQ(told.status(), 413) << told.whole_body();
  EXPECT_EQ(code_of(told), "payload_too_large");
  HttpCall announced(node.port(),
                     "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n"
                     "Expect: 100-continue\r\nContent-Length: 1000000000000\r\n\r\n");
  EXPECT_EQ(announced.status(), 413);
  HttpCall chunked(node.port(),
                   "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n"
                   "Transfer-Encoding: chunked\r\n\r\nfa0\r\n" +
                       std::string(4000, ' ') + "\r\n");
  EXPECT_EQ(chunked.status(), 413);
  EXPECT_EQ(node.chat("a").status(), 200);
}

TEST(BadInput, EachIsA400ThatNamesTheFaultAndTheNodeGoesOn) {
  TestNode node({});
  const std::string messages = R"("messages":[{"role":"user","content":"x"}])";
  std::string deep = R"({"model":"a",)" + messages + R"(,"x":)";
  deep += std::string(10'000, '[') + std::string(10'000, ']') + "}";
  const std::vector<std::pair<std::string, std::string>> bodies = {
      {"this is not JSON", "request body"},
      {"[1,2]", "array"},
      {"{}", "messages"},
      {R"({"model":"a"})", "messages"},
      {R"({"model":"a","messages":[]})", "messages"},
      {R"({"model":"a","messages":{}})", "messages"},
      {R"({"model":7,)" + messages + "}", "model"},
      {R"({"model":"a","model":"b",)" + messages + "}", "model"},
      {R"({"model":"a","messages":[{"role":"wizard","content":"x"}]})", "wizard"},
      {R"({"model":"a","messages":[{"role":"user","content":7}]})", "content"},
      {R"({"model":"a","n":0,)" + messages + "}", "'n'"},
      {R"({"model":"a","stream":"yes",)" + messages + "}", "stream"},
      {"{\"model\":\"a\xff\"," + messages + "}", "UTF-8"},
      {R"({"model":"a",)" + messages, "request body"},
      {deep, "nest"},
  };
  for (const auto& [body, named] : bodies) {
    SCOPED_TRACE(body.substr(0, 80));
    HttpCall call = chat(node.port(), body);
    EXPECT_EQ(call.status(), 400) << call.whole_body();
    EXPECT_NE(message_of(call).find(named), std::string::npos) << message_of(call);
  }
  HttpCall empty(node.port(),
                 "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n"
                 "Content-Length: 0\r\n\r\n");
  EXPECT_EQ(empty.status(), 400);
  EXPECT_EQ(node.spawned(), 0u);
  EXPECT_EQ(node.chat("a").status(), 200);
}

TEST(BadInput, ToolsForATemplateThatHasNoneAreRefusedWithTheReason) {
  TestNode node({});
  HttpCall call =
      node.chat("a", R"("tools":[{"type":"function","function":{"name":"f","parameters":{}}}])");
  EXPECT_EQ(call.status(), 400);
  EXPECT_NE(message_of(call).find("template"), std::string::npos) << call.whole_body();
  EXPECT_EQ(node.generations(), 0u);
}

// ---- what the node says of itself

TEST(Observability, ShowsRuntimesAndCallsAndNoSecretOrPath) {
  TestNode node({.engine = {{"reply", {{"hold", true}}}}});
  HttpCall call = node.chat("a");
  const EngineEvent generation = node.generation();
  const json::object page = node.observability();
  EXPECT_EQ(page.at("schema").to_number<int>(), 1);
  EXPECT_EQ(page.at("node").at("pid").to_number<int>(), node.process().pid());
  EXPECT_EQ(number_in(page, "calls", "active"), 1u);
  const json::object runtime = runtime_of(page, "a");
  const EngineEvent spawned = node.engines().expect("spawned");
  EXPECT_EQ(runtime.at("pid").to_number<std::uint64_t>(), spawned.number("pid"));
  EXPECT_EQ(runtime.at("state").as_string(), "ready");
  const std::string text = json::serialize(page);
  EXPECT_EQ(text.find(node.home().string()), std::string::npos);
  EXPECT_EQ(text.find(".sock"), std::string::npos);
  const std::string secret =
      std::string(spawned.all.at("env").as_object().at("LLAMA_API_KEY").as_string());
  EXPECT_EQ(text.find(secret), std::string::npos);
  node.engines().release(generation.engine, generation.request());
  EXPECT_EQ(call.status(), 200);
  call.whole_body();
  const json::object after = node.await_observability(
      [](const json::object& now) { return number_in(now, "calls", "served") == 1; });
  EXPECT_EQ(number_in(runtime_of(after, "a"), "slots", "busy"), 0u);
}

}  // namespace
}  // namespace werk::test
