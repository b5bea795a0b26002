// CommandHome: a home with tiny models and fake engines for tests of commands that ask a model. The
// base of their fixtures; blocking.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json.hpp>
#include <chrono>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/support/command_process.hpp"
#include "tests/support/engine_control.hpp"
#include "tests/support/node_process.hpp"
#include "tests/support/temporary_folder.hpp"

namespace werk::test {

class CommandHome : public ::testing::Test {
 protected:
  // `command` is the first word of each command; `engine` what the fakes read.
  explicit CommandHome(std::string command, boost::json::object engine = {})
      : engines_(std::move(engine)), command_(std::move(command)) {}

  void install(const std::vector<std::string>& ids) {
    for (const std::string& id : ids) install_tiny_models(home_.path(), {{id}});
  }
  std::vector<std::string> environment() const {
    std::vector<std::string> all = engines_.environment();
    all.push_back("WERK_LLAMA_SERVER=" + EngineControl::program());
    all.push_back("WERK_HOME=" + home_.path().string());
    return all;
  }
  CommandProcess::Settings settings(std::vector<std::string> words,
                                    Around around = Around::nothing) const {
    words.insert(words.begin(), command_);
    return {std::move(words), environment(), around, {}};
  }
  CommandRun run(std::vector<std::string> words, std::string_view input = {},
                 Around around = Around::nothing) const {
    CommandProcess command(settings(std::move(words), around));
    if (around == Around::pipes) {
      command.type(input);
      command.end_input();
    }
    CommandRun done;
    done.status = command.wait_exit();
    done.out = command.out();
    done.err = command.err();
    return done;
  }
  EngineEvent generation() {
    return engines_.expect("request", [](const EngineEvent& one) {
      const boost::json::value* generation = one.all.if_contains("generation");
      return generation != nullptr && generation->is_bool() && generation->get_bool();
    });
  }
  // What the next one was asked.
  boost::json::object asked() { return boost::json::parse(generation().text("body")).as_object(); }
  // How many engines there ever were, once a generation that no test has taken yet is known: what
  // an engine tells comes a little later than its answer.
  std::size_t spawned() {
    generation();
    return engines_.count("spawned");
  }
  void expect_nothing_left() const {
    EXPECT_TRUE(engines_.none_living_within(std::chrono::seconds(10)));
    EXPECT_FALSE(std::filesystem::exists(home_.path() / "run" / "node.json"));
  }
  static void expect_has(const std::string& text, std::string_view part) {
    EXPECT_NE(text.find(part), std::string::npos) << "no " << part << " in\n" << text;
  }
  // One line that begins with our name.
  static void expect_one_line(const std::string& text) {
    EXPECT_TRUE(text.starts_with("werk: ")) << text;
    EXPECT_EQ(std::ranges::count(text, '\n'), 1) << text;
  }

  TemporaryFolder home_;
  EngineControl engines_;

 private:
  std::string command_;
};

}  // namespace werk::test
