#include "werk/app/top/steering.hpp"

#include <gtest/gtest.h>

#include "werk/app/top/pages_fixture.hpp"

namespace werk::app::top {
namespace {

constexpr std::size_t kPage = 5;

Key character(char32_t code) { return {KeyName::character, code}; }

// A person at the keys.
class Steering : public ::testing::Test {
 protected:
  Steering() { use_wide_locale(); }

  Outcome press(const Key& key) { return act(view_, state_, action_for(key, view_.mode), kPage); }
  void type(std::u32string_view text) {
    for (const char32_t code : text) press(character(code));
  }
  std::vector<std::string> models(Pane pane = Pane::runtimes) const {
    std::vector<std::string> names;
    for (const Row& row : rows_in_view(state_, view_, pane)) names.push_back(row.model);
    return names;
  }
  std::string selected() const {
    const auto rows = rows_in_view(state_, view_, view_.pane);
    return rows.empty() ? "" : rows[selected_index(rows, view_.of(view_.pane))].id;
  }

  State state_ = state_of(full_page());
  View view_;
};

using Models = std::vector<std::string>;

TEST_F(Steering, ModelsStandByNameAndCallsByAgeAtFirst) {
  EXPECT_EQ(models(), (Models{"big", "coder", "far"}));
  EXPECT_EQ(models(Pane::calls), (Models{"big", "coder", "far", "coder"}));
}

TEST_F(Steering, ALetterSortsByItsColumnAndOnceMoreTurnsItRound) {
  press(character('T'));
  EXPECT_EQ(models(), (Models{"coder", "far", "big"})) << "the fastest first, the unknown last";
  press(character('T'));
  EXPECT_EQ(models(), (Models{"far", "coder", "big"})) << "the unknown still last";
  press(character('M'));
  EXPECT_EQ(models(), (Models{"coder", "big", "far"}));
  press(character('r'));
  EXPECT_EQ(models(), (Models{"big", "coder", "far"}));
  press(character('Z'));
  EXPECT_EQ(models(), (Models{"big", "coder", "far"})) << "no column has that letter";
}

TEST_F(Steering, SortKeysGoToTheColumnBesideAndRoundTheEnds) {
  const std::size_t columns = columns_of(Pane::runtimes).size();
  press(character('<'));
  EXPECT_EQ(view_.of(Pane::runtimes).column, columns - 1);
  press(character('>'));
  EXPECT_EQ(view_.of(Pane::runtimes).column, kModelColumn);
  press(character('>'));
  EXPECT_EQ(columns_of(Pane::runtimes)[view_.of(Pane::runtimes).column].title, "ENGINE");
  EXPECT_EQ(models(), (Models{"coder", "far", "big"}));
}

TEST_F(Steering, EveryColumnHasALetterOfItsOwn) {
  for (const Pane pane : {Pane::runtimes, Pane::calls}) {
    std::string letters;
    for (const Column& column : columns_of(pane)) {
      EXPECT_EQ(letters.find(column.letter), std::string::npos) << column.title;
      letters += column.letter;
    }
  }
}

TEST_F(Steering, EndedCallsStayBehindTheOthersInEveryOrder) {
  press({KeyName::tab});
  for (const char32_t letter : U"NSAPOTDX") {
    press(character(letter));
    EXPECT_EQ(rows_in_view(state_, view_, Pane::calls).back().id, "call-9");
    press(character('r'));
    EXPECT_EQ(rows_in_view(state_, view_, Pane::calls).back().id, "call-9");
  }
}

TEST_F(Steering, ASelectionStaysWithItsRowWhereverTheRowGoes) {
  EXPECT_EQ(selected(), "big-key");
  press({KeyName::down});
  EXPECT_EQ(selected(), "coder-key");
  press(character('T'));
  EXPECT_EQ(selected(), "coder-key");
  press({KeyName::down});
  EXPECT_EQ(selected(), "far-key");
  press({KeyName::page_up});
  EXPECT_EQ(selected(), "coder-key") << "it is the first now";
  press({KeyName::end});
  EXPECT_EQ(selected(), "big-key");
  press({KeyName::down});
  EXPECT_EQ(selected(), "big-key");
  press(character('k'));
  press(character('k'));
  press(character('k'));
  EXPECT_EQ(selected(), "coder-key");
}

TEST_F(Steering, AnotherRowIsSelectedWhereTheSelectedOneWent) {
  press({KeyName::end});
  EXPECT_EQ(selected(), "far-key");
  state_.runtimes.pop_back();
  EXPECT_EQ(selected(), "coder-key") << "the last that is left";
  state_.runtimes.clear();
  EXPECT_EQ(selected(), "");
  press({KeyName::up});
  press({KeyName::page_down});
  EXPECT_EQ(selected(), "");
}

TEST_F(Steering, PageKeysMoveByAPage) {
  state_ = state_of(crowded_page(20));
  press({KeyName::tab});
  EXPECT_EQ(selected(), "call-019") << "the oldest first";
  press({KeyName::page_down});
  EXPECT_EQ(selected(), "call-014");
  press({KeyName::home});
  EXPECT_EQ(selected(), "call-019");
  press(character('G'));
  EXPECT_EQ(selected(), "call-000");
}

TEST_F(Steering, AFilterLeavesWhatHoldsItInAnyCaseAndEscapeEndsIt) {
  press(character('/'));
  type(U"COD");
  EXPECT_EQ(view_.mode, Mode::filter);
  EXPECT_EQ(models(), (Models{"coder"}));
  EXPECT_EQ(models(Pane::calls), (Models{"coder", "coder"}));
  press({KeyName::enter});
  EXPECT_EQ(view_.mode, Mode::table);
  EXPECT_EQ(models(), (Models{"coder"}));
  press({KeyName::escape});
  EXPECT_EQ(models().size(), 3u);
}

TEST_F(Steering, AFilterTakesLettersThatAreKeysElsewhereAndAnyScript) {
  press({KeyName::f4});
  type(U"q");
  EXPECT_EQ(view_.filter, "q");
  press({KeyName::backspace});
  type(U"mod\u00e8le\u6a21\U0001F980");
  EXPECT_EQ(view_.filter, "mod\u00e8le\u6a21\U0001F980");
  press({KeyName::backspace});
  press({KeyName::backspace});
  EXPECT_EQ(view_.filter, "mod\u00e8le");
  for (int i = 0; i < 20; ++i) press({KeyName::backspace});
  EXPECT_EQ(view_.filter, "");
  EXPECT_EQ(models().size(), 3u);
}

TEST_F(Steering, PinningIsAskedForAndUnpinningWhereItIsPinned) {
  const Outcome unpin = press(character('p'));
  ASSERT_TRUE(unpin.wish);
  EXPECT_EQ(unpin.wish->what, Wish::What::unpin);
  EXPECT_EQ(unpin.wish->model, "big");
  press({KeyName::down});
  const Outcome pin = press(character('p'));
  ASSERT_TRUE(pin.wish);
  EXPECT_EQ(pin.wish->what, Wish::What::pin);
  EXPECT_EQ(pin.wish->model, "coder");
}

TEST_F(Steering, AnUnloadOfAModelWithCallsIsAskedAboutAndOnlyYesDoesIt) {
  press({KeyName::down});
  EXPECT_FALSE(press(character('u')).wish);
  EXPECT_EQ(view_.mode, Mode::question);
  EXPECT_EQ(view_.question, "coder has 1 call. Unload it once it has ended? (y/n)");
  EXPECT_FALSE(press(character('n')).wish);
  EXPECT_EQ(view_.mode, Mode::table);
  press(character('u'));
  EXPECT_FALSE(press(character('q')).quits) << "a question wants an answer first";
  press(character('u'));
  const Outcome yes = press(character('y'));
  ASSERT_TRUE(yes.wish);
  EXPECT_EQ(yes.wish->what, Wish::What::unload);
  EXPECT_EQ(yes.wish->model, "coder");
}

TEST_F(Steering, TheQuestionIsAboutTheModelThatWasSelectedThen) {
  press({KeyName::down});
  press(character('u'));
  state_.runtimes.erase(state_.runtimes.begin());
  const Outcome yes = press(character('y'));
  ASSERT_TRUE(yes.wish);
  EXPECT_EQ(yes.wish->model, "coder");
}

TEST_F(Steering, AnUnloadOfAnIdleModelIsDoneAtOnce) {
  state_ = state_of(old_page());
  const Outcome unload = press(character('u'));
  ASSERT_TRUE(unload.wish);
  EXPECT_EQ(unload.wish->what, Wish::What::unload);
}

TEST_F(Steering, WhereNothingIsSelectedKeysSaySo) {
  press({KeyName::tab});
  EXPECT_FALSE(press(character('p')).wish);
  EXPECT_NE(view_.message, "");
  press({KeyName::back_tab});
  EXPECT_EQ(view_.message, "");
  state_.runtimes.clear();
  EXPECT_FALSE(press(character('u')).wish);
  EXPECT_EQ(view_.message, "nothing is loaded");
}

TEST_F(Steering, TheHelpClosesOnAnyKeyAndOnlyThat) {
  press(character('?'));
  EXPECT_EQ(view_.mode, Mode::help);
  EXPECT_FALSE(press(character('q')).quits);
  EXPECT_EQ(view_.mode, Mode::table);
  press({KeyName::f1});
  press({KeyName::escape});
  EXPECT_EQ(view_.mode, Mode::table);
}

TEST_F(Steering, QuitsByItsKeysAndIgnoresOthers) {
  EXPECT_TRUE(press(character('q')).quits);
  EXPECT_TRUE(press({KeyName::f10}).quits);
  EXPECT_TRUE(press(character(0x0C)).redraws);
  EXPECT_FALSE(press({KeyName::other}).quits);
  EXPECT_FALSE(press(character('x')).quits);
}

}  // namespace
}  // namespace werk::app::top
