#include "werk/engine/llama_server/facts.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "werk/engine/llama_server/failure.hpp"

namespace werk::engine::llama_server {
namespace {

TEST(Facts, TheModelListMustNameTheAlias) {
  constexpr std::string_view kBody =
      R"({"models":[],"object":"list","data":[{"id":"/home/me/other.gguf","aliases":["second"]}]})";
  EXPECT_TRUE(check_serves(kBody, "second").has_value());
  const Status foreign = check_serves(kBody, "werk-1");
  ASSERT_FALSE(foreign.has_value());
  EXPECT_EQ(foreign.error().code, ErrorCode::start_failed);
  EXPECT_NE(foreign.error().message.find("another model"), std::string::npos);
  EXPECT_EQ(foreign.error().message.find("/home/me"), std::string::npos);
  EXPECT_FALSE(check_serves(R"({"data":[]})", "werk-1").has_value());
}

TEST(Facts, ForeignBodiesAreErrorsAndNoMore) {
  for (const std::string_view body :
       {"", "null", "[]", "{}", "\"x\"", R"({"data":7})", "<html>", R"({"total_slots":-1})"}) {
    EXPECT_FALSE(check_serves(body, "a").has_value()) << body;
    EXPECT_FALSE(parse_props(body).has_value()) << body;
    EXPECT_EQ(count_busy_slots(body).has_value(), body == "[]") << body;
  }
  EXPECT_FALSE(count_busy_slots(R"([{"id":0}])").has_value());
}

TEST(Facts, PropsTellSlotsContextAndAbilities) {
  const auto facts =
      parse_props(R"({"default_generation_settings":{"n_ctx":2560},"total_slots":2,)"
                  R"("modalities":{"vision":true},)"
                  R"("chat_template_caps":{"supports_tools":false},"build_info":"b1-de3ff81"})");
  ASSERT_TRUE(facts.has_value());
  EXPECT_EQ(facts->slots, 2u);
  EXPECT_EQ(facts->context_tokens_per_slot, 2560u);
  EXPECT_FALSE(facts->supports_tools);
  EXPECT_TRUE(facts->supports_images);
  const auto old = parse_props(R"({"total_slots":1})");
  ASSERT_TRUE(old.has_value());
  EXPECT_TRUE(old->supports_tools) << "an engine too old to tell is believed able";
  EXPECT_FALSE(old->supports_images);
}

TEST(Facts, AnEngineThatTellsNothingOfItsTemplateIsBelievedAble) {
  const auto facts = parse_props(R"({"total_slots":1})");
  ASSERT_TRUE(facts);
  EXPECT_TRUE(facts->supports_tools);
  EXPECT_TRUE(facts->takes_later_system);
  EXPECT_FALSE(facts->keeps_reasoning);
}

TEST(Facts, TemplatesThatRefuseALaterSystemMessageAreKnownByTheirWords) {
  const auto takes = [](std::string_view chat_template) {
    const auto facts =
        parse_props(fmt::format(R"({{"total_slots":1,"chat_template":"{}"}})", chat_template));
    return facts && facts->takes_later_system;
  };
  EXPECT_TRUE(takes("{% for m in messages %}{{ m.role }}{% endfor %}"));
  EXPECT_TRUE(takes("{{ raise_exception('No user query found.') }}"));
  EXPECT_FALSE(takes("{{ raise_exception('System message must be at the beginning.') }}"));
  EXPECT_FALSE(takes("{{ raise_exception('Roles must alternate user/assistant') }}"));
}

TEST(Facts, LessThanAskedForIsRefusedAndMoreIsFine) {
  StartPlan plan;
  plan.slots = 4;
  plan.context_tokens_per_slot = 1000;
  const auto check = [&plan](std::size_t slots, std::uint64_t context, SizedBy by_slots,
                             SizedBy by_context) {
    RuntimeFacts facts;
    facts.slots = slots;
    facts.context_tokens_per_slot = context;
    return check_sizes(plan, facts, by_slots, by_context).has_value();
  };
  EXPECT_TRUE(check(4, 1024, SizedBy::plan, SizedBy::plan));
  EXPECT_TRUE(check(5, 1000, SizedBy::plan, SizedBy::plan));
  EXPECT_FALSE(check(3, 1024, SizedBy::plan, SizedBy::plan));
  EXPECT_FALSE(check(4, 999, SizedBy::plan, SizedBy::plan));
  EXPECT_TRUE(check(4, 256, SizedBy::plan, SizedBy::extra_arguments));
  EXPECT_FALSE(check(3, 256, SizedBy::plan, SizedBy::extra_arguments));
  EXPECT_TRUE(check(8, 512, SizedBy::extra_arguments, SizedBy::plan));
}

TEST(Facts, BusySlotsAreCounted) {
  EXPECT_EQ(count_busy_slots("[]").value_or(9), 0u);
  EXPECT_EQ(
      count_busy_slots(R"([{"is_processing":true},{"is_processing":false},{"is_processing":true}])")
          .value_or(9),
      2u);
}

TEST(Secrets, AreWhatFollowsAFlagThatNamesOne) {
  const std::vector<std::string> words = {"--hf-token", "hf_abcdefgh", "--Some-Key=12345678",
                                          "--password", "short",       "--x",
                                          "key",        "--token",     "--y"};
  EXPECT_EQ(without_secrets(words),
            (std::vector<std::string>{"--hf-token", "***", "--Some-Key=***", "--password", "***",
                                      "--x", "key", "--token", "--y"}));
  EXPECT_EQ(secrets_in(words), (std::vector<std::string>{"hf_abcdefgh", "12345678"}));
}

TEST(Masker, HidesTheLongestMatchEverywhere) {
  Masker masker;
  masker.hide("/home/me", "~");
  masker.hide("/home/me/models/a.gguf", "<model>");
  masker.hide("s3cret", "<key>");
  masker.hide("", "never");
  masker.hide("/", "never");
  EXPECT_EQ(masker.apply("open /home/me/models/a.gguf, /home/me/x with s3crets3cret / "),
            "open <model>, ~/x with <key><key> / ");
}

constexpr std::string_view kUnknownArchitecture =
    "0.00.004.122 I srv    load_model: loading model '<model>'\n"
    "0.00.024.924 E llama_model_load: error loading model: unknown model architecture: 'zlama'\n"
    "0.00.024.965 E llama_model_load_from_file_impl: failed to load model\n"
    "0.00.025.033 I srv    operator(): operator(): cleaning up before exit...\n";
constexpr std::string_view kCutFile =
    "0.00.013.502 E gguf_init_from_reader: failed to read key-value pairs\n"
    "0.00.014.005 E llama_model_load: error loading model: llama_model_loader: failed to load "
    "model from <model>\n";
constexpr std::string_view kNoMemory =
    "0.00.142.446 E ggml_aligned_malloc: insufficient memory (attempted to allocate 11520.00 MB)\n"
    "0.00.143.669 E srv    load_model: failed to create_context with model '<model>'\n"
    "0.00.146.578 E srv  llama_server: exiting due to model loading error\n";

TEST(Failure, TheLinesThatTellAreTheErrorsWithoutStamps) {
  EXPECT_EQ(telling_lines(kCutFile, 1000),
            "gguf_init_from_reader: failed to read key-value pairs; llama_model_load: error "
            "loading model: "
            "llama_model_loader: failed to load model from <model>");
  EXPECT_EQ(telling_lines("1\n2\n3\n4\n5\n6\n7\n8\n", 1000), "3; 4; 5; 6; 7; 8");
  EXPECT_EQ(telling_lines("terminate called\n0.00.1 E once\n0.00.2 E once\n", 1000), "once");
  EXPECT_LE(telling_lines(std::string(5000, 'x'), 100).size(), 110u);
  EXPECT_EQ(telling_lines("", 100), "");
}

TEST(Failure, FaultsThatCannotPassAreToldFromThoseThatMay) {
  Executable executable;
  executable.version.semantic = "0.5.0";
  const auto failure = [&executable](std::string_view exit, std::string_view output) {
    return start_failure(exit, output, executable, std::nullopt);
  };
  const Error unknown = failure("exit status 1", kUnknownArchitecture);
  EXPECT_EQ(unknown.code, ErrorCode::model_unusable);
  EXPECT_NE(unknown.message.find("0.5.0"), std::string::npos);
  EXPECT_NE(unknown.message.find("'zlama'"), std::string::npos);
  EXPECT_NE(unknown.message.find("WERK_LLAMA_SERVER"), std::string::npos);
  EXPECT_EQ(failure("exit status 1", kCutFile).code, ErrorCode::model_unusable);
  const Error memory = failure("exit status 1", kNoMemory);
  EXPECT_EQ(memory.code, ErrorCode::start_failed);
  EXPECT_NE(memory.message.find("--ctx-size"), std::string::npos);
  EXPECT_NE(
      start_failure("exit status 1", kNoMemory, executable, 4096).message.find("--ctx-size 4096"),
      std::string::npos);
  EXPECT_EQ(failure("killed by SIGKILL", "").code, ErrorCode::start_failed);
  EXPECT_NE(failure("killed by SIGILL", "").message.find("werk engine install"), std::string::npos);
  EXPECT_NE(
      failure("exit status 1", "error: invalid argument: --foo\n").message.find("WERK_LLAMA_ARGS"),
      std::string::npos);
  const Error other = failure("exit status 3", "no idea\n");
  EXPECT_EQ(other.code, ErrorCode::start_failed);
  EXPECT_EQ(other.origin, Origin::engine);
  EXPECT_NE(other.message.find("exit status 3"), std::string::npos);
  EXPECT_NE(other.message.find("no idea"), std::string::npos);
}

}  // namespace
}  // namespace werk::engine::llama_server
