#include "werk/app/commands/top.hpp"

#include <fmt/format.h>
#include <langinfo.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <clocale>
#include <csignal>
#include <cstring>
#include <optional>

#include "werk/app/commands/ask.hpp"
#include "werk/app/node_client.hpp"
#include "werk/app/terminal.hpp"
#include "werk/app/top/layout.hpp"
#include "werk/app/top/report.hpp"
#include "werk/app/top/state.hpp"
#include "werk/app/top/steering.hpp"
#include "werk/app/top/terminal_screen.hpp"
#include "werk/process/interrupt.hpp"
#include "werk/process/signal_pipe.hpp"

namespace werk::app {

using namespace std::chrono_literals;

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kColumnsElsewhere = 120;  // of a listing that is no terminal's
constexpr auto kTryAgain = 1s;
constexpr auto kAnswerMax = 5s;   // without a byte: it hangs
constexpr auto kAnswerLate = 2s;  // the picture is no longer the present
constexpr auto kMessageShown = 10s;

// Widths of characters are those of UTF-8, whatever the locale says of other things.
void use_wide_characters() {
  std::setlocale(LC_CTYPE, "");
  if (std::strcmp(::nl_langinfo(CODESET), "UTF-8") != 0) std::setlocale(LC_CTYPE, "C.UTF-8");
}

NodeRequest page_request() {
  NodeRequest request;
  request.target = "/werk/v1/observability";
  request.silence_max = kAnswerMax;
  return request;
}

NodeRequest request_of(const top::Wish& wish) {
  constexpr std::array<std::string_view, 3> kRoutes = {"pin", "unpin", "unload"};
  NodeRequest request;
  request.method = "POST";
  request.target = fmt::format("/werk/v1/models/{}/{}", path_segment(wish.model),
                               kRoutes[static_cast<std::size_t>(wish.what)]);
  request.body = "{}";
  return request;
}

std::string_view begun(top::Wish::What what) {
  return what == top::Wish::What::unload ? "ends its calls, then it is unloaded" : "...";
}

std::string_view done(top::Wish::What what) {
  switch (what) {
    case top::Wish::What::pin: return "is pinned";
    case top::Wish::What::unpin: return "is no longer pinned";
    case top::Wish::What::unload: return "is unloaded";
  }
  return "";
}

// A page and when it came.
struct Picture {
  top::State state;
  Clock::time_point at;
};

Result<Picture> picture_of(const std::string& page, const Picture* before) {
  auto state = top::read_state(page, std::chrono::system_clock::now());
  if (!state) return pass_on(state);
  Picture picture{std::move(*state), Clock::now()};
  if (before != nullptr) top::add_rates(picture.state, before->state, picture.at - before->at);
  return picture;
}

Result<Picture> ask_once(const NodeClient& node, const Picture* before) {
  const auto page = node.ask(page_request());
  if (!page) return fail(page.error());
  return picture_of(*page, before);
}

int print_once(const CommandLine& line, const NodeAddress& address) {
  const NodeClient node(address);
  auto picture = ask_once(node, nullptr);
  if (picture && top::lacks_rates(picture->state)) {
    Status waited = process::pause(line.top.interval);
    if (!waited) return ask_failed(waited.error());
    picture = ask_once(node, &*picture);
  }
  if (!picture) return ask_failed(picture.error());
  if (line.json == Json::yes) {
    fmt::print("{}\n", top::json_report(picture->state, address.url));
    return 0;
  }
  top::Link link;
  link.address = address.url;
  const std::size_t columns =
      is_terminal(STDOUT_FILENO) ? columns_of(STDOUT_FILENO) : kColumnsElsewhere;
  for (const top::Line& one : top::listing(picture->state, top::View(), link, columns))
    fmt::print("{}\n", top::plain_text(one));
  return 0;
}

// The screen from its first picture to the key that ends it.
class Session {
 public:
  Session(const CommandLine& line, const Settings& settings, const std::filesystem::path& home,
          NodeAddress address, Picture picture)
      : line_(line),
        settings_(settings),
        home_(home),
        address_(std::move(address)),
        picture_(std::move(picture)) {}

  int run();

 private:
  void turn(const process::SignalPipe& signals);
  // Whether the command goes on.
  bool heed(int signal);
  void type(const top::Key& key);
  void ask_for_page();
  void take_page(Result<std::string> page);
  void ask_for(top::Wish wish);
  void say(std::string message);
  top::Link link() const;
  void show();

  const CommandLine& line_;
  const Settings& settings_;
  const std::filesystem::path& home_;
  NodeAddress address_;
  Picture picture_;
  top::View view_;
  std::string lost_;                           // why the last page didn't come; empty: it did
  std::optional<Clock::time_point> asked_at_;  // of a page that is under way
  Clock::time_point next_page_ = Clock::now();
  Clock::time_point said_at_;
  std::optional<int> exit_status_;
  std::unique_ptr<top::TerminalScreen> screen_;
  NodeCalls calls_;  // goes first: what it calls is above
};

int Session::run() {
  // Before ncurses, which takes over only those signals that nobody has.
  process::SignalPipe signals;
  auto opened = top::TerminalScreen::open();
  if (!opened) return failed(opened.error());
  screen_ = std::move(*opened);
  while (!exit_status_) {
    show();
    turn(signals);
    for (const int signal : signals.take()) {
      if (!heed(signal)) exit_status_ = 128 + signal;
    }
    for (const top::Key& key : screen_->keys()) type(key);
    if (screen_->is_hung_up()) exit_status_ = 128 + SIGHUP;
  }
  screen_.reset();
  return *exit_status_;
}

void Session::turn(const process::SignalPipe& signals) {
  const auto now = Clock::now();
  if (!asked_at_ && now >= next_page_) ask_for_page();
  // At least once a second, since the age of an old picture is shown.
  std::chrono::milliseconds wait = kTryAgain;
  if (!asked_at_)
    wait = std::min(wait, std::chrono::ceil<std::chrono::milliseconds>(next_page_ - now));
  const std::array<int, 2> descriptors = {STDIN_FILENO, signals.descriptor()};
  const std::span<const int> all(descriptors.data(), signals.descriptor() < 0 ? 1 : 2);
  calls_.turn(all, std::max(wait, 0ms));
  if (!view_.message.empty() && Clock::now() - said_at_ > kMessageShown) view_.message.clear();
}

bool Session::heed(int signal) {
  if (signal == SIGWINCH) {
    screen_->fit();
    return true;
  }
  if (signal != SIGTSTP) return false;
  screen_->leave();
  process::SignalPipe::stop_here();
  screen_->come_back();
  return true;
}

void Session::type(const top::Key& key) {
  top::Outcome outcome = top::act(view_, picture_.state, top::action_for(key, view_.mode),
                                  top::page_of(screen_->extent()));
  said_at_ = Clock::now();
  if (outcome.quits) exit_status_ = exit_status_.value_or(0);
  if (outcome.redraws) screen_->redraw();
  if (outcome.wish) ask_for(std::move(*outcome.wish));
}

void Session::ask_for_page() {
  // A node that was started again has another address.
  const auto address = find_node(line_.url, settings_, home_);
  next_page_ = Clock::now() + (lost_.empty() ? line_.top.interval : kTryAgain);
  if (!address) {
    lost_ = "no node serves this home";
    return;
  }
  address_ = *address;
  asked_at_ = Clock::now();
  calls_.begin(address_, page_request(),
               [this](Result<std::string> page) { take_page(std::move(page)); });
}

void Session::take_page(Result<std::string> page) {
  asked_at_.reset();
  auto picture = page ? picture_of(*page, &picture_) : Result<Picture>(fail(page.error()));
  if (!picture) {
    lost_ = picture.error().message;
    next_page_ = std::max(next_page_, Clock::now() + kTryAgain);
    return;
  }
  lost_.clear();
  picture_ = std::move(*picture);
}

void Session::ask_for(top::Wish wish) {
  say(fmt::format("{} {}", wish.model, begun(wish.what)));
  calls_.begin(address_, request_of(wish), [this, wish](Result<std::string> answer) {
    say(answer ? fmt::format("{} {}", wish.model, done(wish.what)) : answer.error().message);
    next_page_ = Clock::now();
  });
}

void Session::say(std::string message) {
  view_.message = std::move(message);
  said_at_ = Clock::now();
}

top::Link Session::link() const {
  top::Link link;
  link.address = address_.url;
  link.reason = lost_;
  if (lost_.empty() && asked_at_ && Clock::now() - *asked_at_ > kAnswerLate)
    link.reason = "the node is silent";
  if (link.reason.empty()) return link;
  link.condition = top::Link::Condition::lost;
  link.picture_age = std::chrono::floor<std::chrono::seconds>(Clock::now() - picture_.at);
  return link;
}

void Session::show() {
  screen_->show(top::screen(picture_.state, view_, link(), screen_->extent()));
}

}  // namespace

int top_command(const CommandLine& line, const Settings& settings,
                const std::filesystem::path& home) {
  use_wide_characters();
  auto address = find_node(line.url, settings, home);
  if (!address) return ask_failed(address.error());
  if (line.top.once == Once::yes) return print_once(line, *address);
  // What is wrong from the beginning is told as by any other command, and not on a screen.
  auto picture = ask_once(NodeClient(*address), nullptr);
  if (!picture) return ask_failed(picture.error());
  return Session(line, settings, home, std::move(*address), std::move(*picture)).run();
}

}  // namespace werk::app
