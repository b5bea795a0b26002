// Another node as a remote behind nginx with TLS: what the wire adds must not be felt.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <optional>

#include "tests/e2e/test_node.hpp"
#include "tests/e2e/tls_proxy.hpp"

namespace werk::test {
namespace {

using Buffering = TlsProxy::Buffering;

class RemoteTls : public ::testing::Test {
 protected:
  void SetUp() override {
    if (TlsProxy::program().empty())
      GTEST_SKIP() << "nginx is not installed; `tools/setup test` brings it";
    far_.emplace(TestNode::Settings{.models = {{"far"}}, .engine = {{"reply", {{"gated", true}}}}});
  }

  // A node that has the other as its remote, at this name, and trusts this file.
  void connect(const TlsProxy& proxy, std::string_view name, const std::string& trusted) {
    near_.emplace(TestNode::Settings{
        .models = {{"near"}},
        .arguments = {"--remote", fmt::format("lab=https://{}:{}/v1", name, proxy.port())},
        .environment = {"SSL_CERT_FILE=" + trusted, "SSL_CERT_DIR=/nonexistent"}});
  }

  HttpCall message(std::string_view more) {
    return HttpCall(near_->port(), "POST", "/v1/messages",
                    fmt::format(R"({{"model":"far","max_tokens":9,"messages":[{{"role":"user",)"
                                R"("content":"Hi"}}]{}}})",
                                more),
                    {"Content-Type: application/json"});
  }

  // Token by token, each seen by the client before the engine makes the next.
  void expect_event_by_event(HttpCall& stream) {
    const EngineEvent generation = far_->generation();
    for (int token = 0; token < 3; ++token) {
      far_->engines().step(generation.engine, generation.request());
      const std::string text = fmt::format("tok{}", token);
      EXPECT_NE(stream.body_until(text).find(text), std::string::npos);
    }
    far_->engines().finish(generation.engine, generation.request());
    stream.whole_body();
    EXPECT_EQ(stream.end(), BodyEnd::proper);
  }

  std::optional<TestNode> far_;
  std::optional<TestNode> near_;
};

TEST_F(RemoteTls, AStreamComesEventByEventThroughAProxyThatDoesNotBuffer) {
  const TlsProxy proxy({}, far_->port(), Buffering::off);
  connect(proxy, "localhost", proxy.certificate());
  HttpCall chat = near_->chat("far", R"("stream":true)");
  expect_event_by_event(chat);
  EXPECT_TRUE(chat.whole_body().ends_with("data: [DONE]\n\n")) << proxy.errors();
  HttpCall messages = message(R"(,"stream":true)");
  expect_event_by_event(messages);
  EXPECT_NE(messages.whole_body().find("event: message_stop"), std::string::npos);
}

TEST_F(RemoteTls, AStreamThroughAProxyThatBuffersEndsRight) {
  const TlsProxy proxy({}, far_->port(), Buffering::on);
  connect(proxy, "localhost", proxy.certificate());
  HttpCall stream = near_->chat("far", R"("stream":true)");
  const EngineEvent generation = far_->generation();
  far_->engines().finish(generation.engine, generation.request());
  EXPECT_TRUE(stream.whole_body().ends_with("data: [DONE]\n\n")) << proxy.errors();
  EXPECT_EQ(stream.end(), BodyEnd::proper);
}

TEST_F(RemoteTls, AClientThatLeavesEndsTheGenerationBehindTheProxy) {
  const TlsProxy proxy({}, far_->port(), Buffering::off);
  connect(proxy, "localhost", proxy.certificate());
  HttpCall stream = near_->chat("far", R"("stream":true)");
  const EngineEvent generation = far_->generation();
  far_->engines().step(generation.engine, generation.request());
  stream.body_until("tok0");
  stream.close();
  far_->engines().expect("closed", [&generation](const EngineEvent& event) {
    return event.request() == generation.request();
  });
}

TEST_F(RemoteTls, AnUnknownAuthorityIsRefusedAndTold) {
  const TlsProxy proxy({}, far_->port(), Buffering::off);
  const TemporaryFolder elsewhere;
  const TestCertificate stranger(elsewhere.path());
  connect(proxy, "localhost", stranger.file());
  HttpCall call = near_->chat("lab/far");
  EXPECT_GE(call.status(), 400);
  near_->process().wait_for_line("signed by an authority that this machine doesn't know");
  EXPECT_EQ(far_->generations(), 0u);
}

TEST_F(RemoteTls, ACertificateForAnotherNameIsRefusedAndTold) {
  const TlsProxy proxy({.names = "DNS:lab.example"}, far_->port(), Buffering::off);
  connect(proxy, "localhost", proxy.certificate());
  HttpCall call = near_->chat("lab/far");
  EXPECT_GE(call.status(), 400);
  near_->process().wait_for_line("its certificate isn't for 'localhost'");
  EXPECT_EQ(far_->generations(), 0u);
}

}  // namespace
}  // namespace werk::test
