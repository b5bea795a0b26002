#include "werk/engine/llama_server/openmp.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace werk::engine::llama_server {
namespace {

// As glibc 2.36 and llama-server 0.5.0 print it together.
constexpr std::string_view kTrace =
    "Available devices:\n"
    "  (none)\n"
    "      8784:\tfind library=libgomp.so.1 [0]; searching\n"
    "      8784:\t\n"
    "      8784:\tcalling init: /lib/x86_64-linux-gnu/libgomp.so.1\n"
    "    108784:\tcalling init: /opt/engine/libggml-cpu-haswell.so\n"
    "0.00.000.336 I srv  llama_server: initializing ...\n"
    "12: a line of the program's\n"
    "      8784:\tcalling fini: /lib/x86_64-linux-gnu/libgomp.so.1 [0]\n";

TEST(OpenMpTest, TheLoadersLinesAreTakenOutOfTheProgramsOwn) {
  const LoaderTrace trace = read_loader_trace(kTrace);
  EXPECT_EQ(trace.libraries, (std::vector<std::string>{"libgomp.so.1", "libggml-cpu-haswell.so"}));
  EXPECT_EQ(trace.rest,
            "Available devices:\n"
            "  (none)\n"
            "0.00.000.336 I srv  llama_server: initializing ...\n"
            "12: a line of the program's\n");
  EXPECT_TRUE(read_loader_trace("").libraries.empty());
  EXPECT_TRUE(read_loader_trace("   12:\tcalling init: ").rest.empty());
}

TEST(OpenMpTest, LlvmsTakesTheCallsWhereverItIs) {
  const auto among = [](std::vector<std::string> libraries) { return openmp_among(libraries); };
  EXPECT_EQ(among({}), OpenMp::none);
  EXPECT_EQ(among({"libc.so.6", "libompl.so.16"}), OpenMp::none);
  EXPECT_EQ(among({"libc.so.6", "libgomp.so.1"}), OpenMp::gnu);
  EXPECT_EQ(among({"libgomp-870cb1d0.so.1"}), OpenMp::gnu);
  EXPECT_EQ(among({"libgomp.so.1", "libomp.so.5"}), OpenMp::llvm);
  EXPECT_EQ(among({"libomp.so"}), OpenMp::llvm);
  EXPECT_EQ(among({"libomp-14.so.5"}), OpenMp::llvm);
  EXPECT_EQ(among({"libiomp5.so"}), OpenMp::llvm);
}

TEST(OpenMpTest, ALibraryIsLoadedBeforeThoseThatTheEnvironmentNames) {
  EXPECT_EQ(preloading({"HOME=/h"}, "libomp.so.5"),
            (std::vector<std::string>{"HOME=/h", "LD_PRELOAD=libomp.so.5"}));
  EXPECT_EQ(preloading({"LD_PRELOAD=a.so:b.so", "HOME=/h"}, "libomp.so.5"),
            (std::vector<std::string>{"HOME=/h", "LD_PRELOAD=libomp.so.5:a.so:b.so"}));
}

TEST(OpenMpTest, TheMarkOfAProcessIsRemovedAndOthersStay) {
  if (!has_shared_memory()) GTEST_SKIP() << "no shared memory to write to";
  const auto mark_of = [](pid_t pid) {
    return std::filesystem::path("/dev/shm") /
           ("__KMP_REGISTERED_LIB_" + std::to_string(pid) + "_" + std::to_string(::geteuid()));
  };
  std::ofstream(mark_of(::getpid())) << "x";
  remove_openmp_mark(::getpid() + 1);
  EXPECT_TRUE(std::filesystem::exists(mark_of(::getpid())));
  remove_openmp_mark(::getpid());
  EXPECT_FALSE(std::filesystem::exists(mark_of(::getpid())));
}

}  // namespace
}  // namespace werk::engine::llama_server
