#include "werk/engine/llama_server/probe.hpp"

#include <gtest/gtest.h>

#include "werk/engine/llama_server/managed.hpp"
#include "werk/engine/llama_server/probe_cache.hpp"

namespace werk::engine::llama_server {
namespace {

constexpr std::string_view kHelp =
    "----- common params -----\n"
    "\n"
    "-h,    --help, --usage                  print usage and exit\n"
    "-n,    --predict, --n-predict N         number of tokens to predict (default: -1, -1 = "
    "infinity)\n"
    "                                        (env: LLAMA_ARG_N_PREDICT)\n"
    "-fa,   --flash-attn [on|off|auto]       set Flash Attention use\n"
    "--metrics                               enable it, see --props\n"
    "--no-slots                              hide the slots\n"
    "--spec-draft-hf, -hfd, --hf-repo-draft <user>/<model>[:quant]\n"
    "                                        Same as --hf-repo, but for the draft model\n"
    "--draft, --draft-n, --draft-max N       the argument has been removed. use --spec-draft-n-max "
    "or\n"
    "                                        --spec-ngram-mod-n-max\n"
    "--spec-ngram-size-n N                   use --spec-ngram-mod; the\n"
    "                                        argument has been removed.\n"
    "\n"
    "----- example-specific params -----\n"
    "\r\n"
    "-np,   --parallel N                     number of server slots (default: -1, -1 = auto)\r\n";

TEST(Probe, ReadsBothKindsOfVersions) {
  const auto now = parse_version(
      "0.00.000.541 I srv  llama_server: initializing ...\n"
      "version: 0.5.0 (build 1, commit de3ff81)\nbuilt with GNU 12.2.0\n");
  ASSERT_TRUE(now.has_value());
  EXPECT_EQ(*now, (Version{"0.5.0", 1, "de3ff81"}));
  EXPECT_EQ(now->text(), "0.5.0");
  const auto old = parse_version("version: 4567 (abcdef1)\nbuilt with cc\n");
  ASSERT_TRUE(old.has_value());
  EXPECT_EQ(*old, (Version{"", 4567, "abcdef1"}));
  EXPECT_EQ(old->text(), "build 4567");
  EXPECT_EQ(parse_version("version: 0.7.0")->text(), "0.7.0");
}

TEST(Probe, OtherProgramsHaveNoVersion) {
  EXPECT_EQ(parse_version("ls (GNU coreutils) 9.1\n"), std::nullopt);
  EXPECT_EQ(parse_version(""), std::nullopt);
  EXPECT_EQ(parse_version("this is version: 3\n"), std::nullopt);
}

TEST(Probe, FlagsAreWholeWordsAtTheHeadOfAnEntry) {
  const auto flags = parse_help_flags(kHelp);
  EXPECT_EQ(flags, (std::set<std::string, std::less<>>{
                       "-h", "--help", "--usage", "-n", "--predict", "--n-predict", "-fa",
                       "--flash-attn", "--metrics", "--no-slots", "--spec-draft-hf", "-hfd",
                       "--hf-repo-draft", "-np", "--parallel"}));
}

TEST(Probe, DevicesAreListedWithoutTheirMemory) {
  const auto devices = parse_devices(
      "ggml_cuda_init: found 1 CUDA devices:\n"
      "  Device 0: NVIDIA, compute capability 8.6\n"
      "Available devices:\n"
      "  CUDA0: NVIDIA GeForce RTX 3090 (24576 MiB, 24000 MiB free)\n"
      "  Vulkan0: llvmpipe (LLVM 15)\n");
  EXPECT_EQ(devices, (std::vector<Device>{{"CUDA0", "NVIDIA GeForce RTX 3090"},
                                          {"Vulkan0", "llvmpipe (LLVM 15)"}}));
  EXPECT_TRUE(parse_devices("Available devices:\n  (none)\n").empty());
  EXPECT_TRUE(parse_devices("").empty());
}

TEST(Probe, AnAcceleratorIsTheBestMode) {
  Executable executable;
  EXPECT_EQ(executable.best_mode(), Mode::cpu);
  EXPECT_TRUE(executable.suits(Mode::cpu));
  EXPECT_FALSE(executable.suits(Mode::cuda));
  executable.devices = {{"BLAS", ""}, {"Vulkan0", ""}};
  EXPECT_EQ(executable.best_mode(), Mode::vulkan);
  executable.devices.push_back({"ROCm0", ""});
  EXPECT_EQ(executable.best_mode(), Mode::rocm);
  EXPECT_EQ(mode_of_device("MTL0"), Mode::metal);
  EXPECT_EQ(mode_of_device("SYCL0"), std::nullopt);
}

TEST(ProbeCache, GivesBackWhatWasKept) {
  CachedProbe probe;
  probe.identity = FileIdentity{123, 1'700'000'000'123'456'789, 42};
  probe.executable.path = "/opt/with \"quotes\"/llama-server";
  probe.executable.version = Version{"0.5.0", 1, "de3ff81"};
  probe.executable.flags = {"--model", "-np"};
  CachedProbes probes;
  probes.emplace(probe.executable.path, probe);
  const CachedProbes back = probes_from_json(probes_to_json(probes));
  ASSERT_EQ(back.size(), 1u);
  const CachedProbe& one = back.at(probe.executable.path);
  EXPECT_EQ(one.identity, probe.identity);
  EXPECT_EQ(one.executable.version, probe.executable.version);
  EXPECT_EQ(one.executable.flags, probe.executable.flags);
}

TEST(ProbeCache, DamageIsAnEmptyCache) {
  EXPECT_TRUE(probes_from_json("").empty());
  EXPECT_TRUE(probes_from_json("[1,2").empty());
  EXPECT_TRUE(probes_from_json(R"({"executables":[7,{"path":"/a"}]})").empty());
  EXPECT_TRUE(read_probes("/nowhere/at/all.json").empty());
}

TEST(Managed, AProcessorIsKnownByTheFeaturesThatCount) {
  const auto cpu = [](std::string_view flags) {
    return parse_processor("processor : 0\nmodel name\t: AMD EPYC\nflags\t\t: " +
                               std::string(flags) + "\n\nprocessor : 1\n",
                           "x86_64");
  };
  const Processor one = cpu("fpu avx avx2 fma f16c bmi2 sse4_2 avx512f");
  EXPECT_EQ(one.model, "AMD EPYC");
  EXPECT_TRUE(one.has("avx2"));
  EXPECT_EQ(one.fingerprint(), cpu("sse4_2 bmi2 f16c fma avx2 avx").fingerprint());
  EXPECT_NE(one.fingerprint(), cpu("sse4_2 avx").fingerprint());
  EXPECT_NE(parse_processor("", "aarch64").fingerprint(),
            parse_processor("", "x86_64").fingerprint());
}

TEST(Managed, TheRecordComesBackAsItWasWritten) {
  ManagedEngine engine;
  engine.version = "0.5.0";
  engine.source = "npm:node-llama-cpp@3.22.1";
  engine.processor = "x86_64-0011aabb";
  engine.built_for = "AMD EPYC (avx2 fma)";
  engine.sha256 = std::string(64, 'b');
  engine.installed_at = "2026-11-29T22:36:00Z";
  const auto back = managed_from_json(managed_to_json(engine));
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(managed_to_json(*back), managed_to_json(engine));
  EXPECT_FALSE(managed_from_json("{}").has_value());
  EXPECT_FALSE(managed_from_json("half a rec").has_value());
}

}  // namespace
}  // namespace werk::engine::llama_server
