#include "werk/app/top/layout.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "werk/app/top/pages_fixture.hpp"

namespace werk::app::top {
namespace {

using namespace std::chrono_literals;

class Layout : public ::testing::Test {
 protected:
  Layout() {
    use_wide_locale();
    link_.address = "http://127.0.0.1:11434";
  }

  std::vector<Line> lines(const std::string& page, Extent extent = {}) const {
    return screen(state_of(page), view_, link_, extent);
  }
  std::string text(const std::string& page, Extent extent = {}) const {
    return text_of(lines(page, extent));
  }
  static void expect_fits(const std::vector<Line>& lines, Extent extent) {
    EXPECT_EQ(lines.size(), extent.lines);
    for (const Line& line : lines)
      EXPECT_LE(display_width(line), extent.columns) << plain_text(line);
  }

  View view_;
  Link link_;
};

TEST_F(Layout, AScreenOf80ColumnsAnd24Lines) {
  EXPECT_EQ(text(full_page()),
            "Werk 0.1.0  ready  http://127.0.0.1:11434  up 1h20m\n"
            "Slots [|||||            1/4]  waiting 1  tokens/s 85.8  cached 63%\n"
            "Calls active 3  served 120  failed 1  cancelled 4\n"
            "Memory engines 6.6 GB  node 24.1 MB  lag 0.4ms  connections 12  files 88\n"
            "Pools llama-server 1/3  vllm 1 (1 starting)  pinned, not loaded other\n"
            "MODEL              ENGINE       STATE      SLOTS WAIT  TOK/S CACHED   MEMORY PIN\n"
            "big                vllm         starting     0/-    1 reads weights, 1.2 GB in ~\n"
            "coder              llama-cpu    ready        1/4    0   81.2    63%   5.4 GB\n"
            "far                remote       ready        1/-    0    4.5      -        -\n"
            "MODEL              CLIENT          PHASE         AGE PROMPT CACHED    OUT  TOK/S\n"
            "big                127.0.0.1       loading     1m02s   1200    75%     80      -\n"
            "coder              127.0.0.1       generating   3.4s   1200    75%     80   40.0\n"
            "far                127.0.0.1       prompt       0.3s   1200    75%     80      -\n"
            "coder              -               failed      1m00s      -      -      -      -\n"
            "\n"
            "\n"
            "\n"
            "\n"
            "\n"
            "\n"
            "\n"
            "\n"
            "start reads weights, 1.2 GB in memory  pid 4300  calls 0  tokens out 0  engine o\n"
            "h help  q quit  / filter  <> sort  r reverse  Tab calls  p pin  u unload\n");
}

TEST_F(Layout, AScreenOf120ColumnsAnd40Lines) {
  const std::string shown = text(full_page(), {120, 40});
  EXPECT_EQ(shown.substr(0, shown.find("\n\n\n")),
            "Werk 0.1.0  ready  http://127.0.0.1:11434  up 1h20m\n"
            "Slots [|||||            1/4]  waiting 1  tokens/s 85.8  cached 63%\n"
            "Calls active 3  served 120  failed 1  cancelled 4\n"
            "Memory engines 6.6 GB  node 24.1 MB  lag 0.4ms  connections 12  files 88\n"
            "Pools llama-server 1/3  vllm 1 (1 starting)  pinned, not loaded other\n"
            "MODEL                         ENGINE       STATE      SLOTS WAIT  TOK/S CACHED   "
            "MEMORY PIN  SINCE  CALLS   LOAD     PID\n"
            "big                           vllm         starting     0/-    1 reads weights, 1.2 "
            "GB in memory\n"
            "coder                         llama-cpu    ready        1/4    0   81.2    63%   5.4 "
            "GB        42s     12   3.2s    4242\n"
            "far                           remote       ready        1/-    0    4.5      -        "
            "-      1h00m      3      -       -\n"
            "MODEL                           CLIENT          PHASE         AGE PROMPT CACHED    "
            "OUT  TOK/S API       ID\n"
            "big                             127.0.0.1       loading     1m02s   1200    75%     "
            "80      - openai    call-2\n"
            "coder                           127.0.0.1       generating   3.4s   1200    75%     "
            "80   40.0 openai    call-1\n"
            "far                             127.0.0.1       prompt       0.3s   1200    75%     "
            "80      - openai    call-3\n"
            "coder                           -               failed      1m00s      -      -      "
            "-      - anthropic call-9");
  expect_fits(lines(full_page(), {120, 40}), {120, 40});
}

TEST_F(Layout, AListingForPeopleWithoutATerminal) {
  EXPECT_EQ(text_of(listing(state_of(full_page()), view_, link_, 100)),
            "Werk 0.1.0  ready  http://127.0.0.1:11434  up 1h20m\n"
            "Slots [|||||            1/4]  waiting 1  tokens/s 85.8  cached 63%\n"
            "Calls active 3  served 120  failed 1  cancelled 4\n"
            "Memory engines 6.6 GB  node 24.1 MB  lag 0.4ms  connections 12  files 88\n"
            "Pools llama-server 1/3  vllm 1 (1 starting)  pinned, not loaded other\n"
            "\n"
            "MODEL                    ENGINE       STATE      SLOTS WAIT  TOK/S CACHED   MEMORY "
            "PIN  SINCE  CALLS\n"
            "big                      vllm         starting     0/-    1 reads weights, 1.2 GB in "
            "memory\n"
            "coder                    llama-cpu    ready        1/4    0   81.2    63%   5.4 GB    "
            "    42s     12\n"
            "far                      remote       ready        1/-    0    4.5      -        -    "
            "  1h00m      3\n"
            "\n"
            "MODEL                        CLIENT          PHASE         AGE PROMPT CACHED    OUT  "
            "TOK/S API\n"
            "big                          127.0.0.1       loading     1m02s   1200    75%     80   "
            "   - openai\n"
            "coder                        127.0.0.1       generating   3.4s   1200    75%     80   "
            "40.0 openai\n"
            "far                          127.0.0.1       prompt       0.3s   1200    75%     80   "
            "   - openai\n"
            "coder                        -               failed      1m00s      -      -      -   "
            "   - anthropic\n");
}

TEST_F(Layout, AnOlderNodeIsShownWithDashes) {
  const std::string shown = text(old_page());
  EXPECT_NE(shown.find("Memory engines -  node -  lag -  connections -  files -\n"),
            std::string::npos)
      << shown;
  EXPECT_NE(
      shown.find("small              llama-cpu    ready        0/2    0      -      -        -\n"),
      std::string::npos)
      << shown;
  EXPECT_NE(shown.find("\nno calls\n"), std::string::npos) << shown;
}

TEST_F(Layout, EverySizeIsKeptToAndNothingIsWiderThanTheTerminal) {
  for (const std::string& page : {full_page(), old_page(), crowded_page(40)}) {
    for (const Mode mode : {Mode::table, Mode::filter, Mode::question, Mode::help}) {
      view_.mode = mode;
      view_.question = std::string(300, 'q');
      for (const std::size_t columns : {1, 19, 20, 33, 47, 63, 79, 80, 120, 200}) {
        for (const std::size_t height : {1, 5, 6, 10, 23, 24, 50})
          expect_fits(lines(page, {columns, height}), {columns, height});
      }
    }
  }
}

TEST_F(Layout, LongAndWideNamesAreCutAndTheirColumnsStayInPlace) {
  const std::string page = [] {
    const std::string wide = "\u6a21\u578b\u6a21\u578b\u6a21\u578b\u6a21\u578b\u6a21\u578b\u6a21";
    return fmt::format(R"({{"runtimes":[{},{},{}],"active_calls":[{}]}})",
                       runtime_json(std::string(200, 'x'), ""), runtime_json(wide, ""),
                       runtime_json("\u6a21", ""), call_json("c", wide, "generating", 1));
  }();
  const std::vector<Line> shown = lines(page);
  expect_fits(shown, {80, 24});
  const auto before_engine = [](const Line& line) {
    const std::string row = plain_text(line);
    return display_width(std::string_view(row).substr(0, row.find("llama-cpu")));
  };
  const auto is_row = [](const Line& line) {
    return plain_text(line).find("llama-cpu") != std::string::npos;
  };
  EXPECT_EQ(std::ranges::count_if(shown, is_row), 3);
  for (const Line& line : shown) {
    if (!is_row(line)) continue;
    EXPECT_EQ(before_engine(line), 19u) << plain_text(line);
  }
}

TEST_F(Layout, OfTwoHundredCallsThoseAroundTheSelectedOneAreShown) {
  const State state = state_of(crowded_page(200));
  view_.pane = Pane::calls;
  view_.of(Pane::calls).selected = "call-100";
  const std::vector<Line> shown = screen(state, view_, link_, {80, 24});
  const auto selected = std::ranges::find_if(shown, [](const Line& line) {
    return !line.empty() && line.front().style == Style::selected;
  });
  ASSERT_NE(selected, shown.end());
  EXPECT_NE(plain_text(*selected).find("1m41s"), std::string::npos) << plain_text(*selected);
  EXPECT_NE(plain_text(shown[22]).find("call-100"), std::string::npos) << "and what is known of it";
  EXPECT_NE(text_of(shown).find("Calls active 200 (7 not listed)"), std::string::npos);
  view_.of(Pane::calls).selected = "call-000";
  const std::string last = text_of(screen(state, view_, link_, {80, 24}));
  EXPECT_NE(last.find(" 1.0s "), std::string::npos) << "the end of the list is reached\n" << last;
}

TEST_F(Layout, ManyModelsAndManyCallsShareTheScreen) {
  std::string runtimes;
  for (int i = 0; i < 30; ++i)
    runtimes += fmt::format("{}{}", i == 0 ? "" : ",", runtime_json(fmt::format("m{:02}", i), ""));
  std::string calls;
  for (int i = 0; i < 30; ++i) {
    calls += fmt::format("{}{}", i == 0 ? "" : ",",
                         call_json(fmt::format("c{}", i), "busy", "generating", 1));
  }
  const std::string page =
      fmt::format(R"({{"runtimes":[{}],"active_calls":[{}]}})", runtimes, calls);
  const std::vector<Line> shown = lines(page);
  const auto count = [&](std::string_view word) {
    return std::ranges::count_if(
        shown, [&](const Line& line) { return plain_text(line).starts_with(word); });
  };
  EXPECT_EQ(count("m"), 7);
  EXPECT_EQ(count("busy"), 8);
}

TEST_F(Layout, ANodeThatIsGoneIsSaidAndItsLastPictureIsGrey) {
  link_.condition = Link::Condition::lost;
  link_.reason = "connection refused";
  link_.picture_age = 12s;
  const std::vector<Line> shown = lines(full_page());
  EXPECT_EQ(plain_text(shown[0]),
            "Werk 0.1.0  no answer for 12s: connection refused  http://127.0.0.1:11434");
  EXPECT_EQ(shown[0][3].style, Style::bad);
  EXPECT_NE(text_of(shown).find("coder"), std::string::npos);
  for (std::size_t i = 1; i + 1 < shown.size(); ++i) {
    for (const Span& span : shown[i])
      EXPECT_TRUE(span.style == Style::dim || span.style == Style::selected) << span.text;
  }
  link_.reason = std::string(300, 'r');
  expect_fits(lines(full_page()), {80, 24});
}

TEST_F(Layout, WhyANodeIsNotReadyIsSaidFirst) {
  std::string page = full_page();
  const std::string_view ready = R"("ready":true,"not_ready":null)";
  page.replace(page.find(ready), ready.size(), R"("ready":false,"not_ready":"the loop lags")");
  EXPECT_EQ(plain_text(lines(page)[0]),
            "Werk 0.1.0  not ready: the loop lags  http://127.0.0.1:11434");
}

TEST_F(Layout, TheFootAsksFiltersAndTellsInPlaceOfTheKeys) {
  view_.mode = Mode::question;
  view_.question = "Unload it? (y/n)";
  EXPECT_EQ(plain_text(lines(full_page())[23]), "Unload it? (y/n)");
  view_.mode = Mode::filter;
  view_.filter = "cod";
  EXPECT_EQ(plain_text(lines(full_page())[23]), "filter: cod_");
  view_.mode = Mode::table;
  EXPECT_TRUE(plain_text(lines(full_page())[23]).starts_with("filter: cod  h help"));
  view_.message = "coder is pinned";
  EXPECT_EQ(plain_text(lines(full_page())[23]), "coder is pinned");
  view_.filter = "nobody";
  EXPECT_NE(text(full_page()).find("nothing here holds \"nobody\""), std::string::npos);
}

TEST_F(Layout, TheHelpNamesEveryKeyAndTheLettersOfTheColumns) {
  view_.mode = Mode::help;
  const std::string shown = text(full_page());
  for (const KeyHelp& help : key_help())
    EXPECT_NE(shown.find(help.keys), std::string::npos) << help.keys;
  EXPECT_NE(shown.find("T=TOK/S"), std::string::npos) << shown;
  EXPECT_NE(shown.find("I=PID"), std::string::npos) << shown;
}

}  // namespace
}  // namespace werk::app::top
