#include "werk/app/commands/control.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <cstdio>

#include "werk/app/commands/ask.hpp"
#include "werk/app/commands/ps.hpp"
#include "werk/app/node_client.hpp"
#include "werk/app/node_page.hpp"
#include "werk/app/terminal.hpp"
#include "werk/base/text.hpp"
#include "werk/engine/output_files.hpp"
#include "werk/model/store.hpp"
#include "werk/process/interrupt.hpp"
#include "werk/process/node_lock.hpp"

namespace werk::app {

namespace json = boost::json;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t kTerminalColumns = 80;
constexpr std::string_view kNothingYet = "werk: no engine has printed anything yet\n";

Result<json::object> parsed_page(const std::string& text) {
  boost::system::error_code error;
  json::value page = json::parse(text, error);
  if (error || !page.is_object())
    return fail(ErrorCode::io, "the node's answer is not what a node of this version says");
  return std::move(page.get_object());
}

Result<json::object> ask(const NodeClient& node, NodeRequest request) {
  const auto text = node.ask(request);
  if (!text) return fail(text.error());
  return parsed_page(*text);
}

NodeRequest act(const std::string& model, std::string_view what) {
  NodeRequest request;
  request.method = "POST";
  request.target = fmt::format("/werk/v1/models/{}/{}", path_segment(model), what);
  request.body = "{}";
  return request;
}

std::string shown_in(const json::object& page, std::string_view member) {
  return shown_text(text_in(page, member));
}

// The answer of a load: a line of JSON for each sign of progress, then the runtime or the error.
class LoadAnswer {
 public:
  explicit LoadAnswer(const std::string& model) : model_(model) {}

  void take(std::string_view piece) {
    open_ += piece;
    while (true) {
      const std::size_t end = open_.find('\n');
      if (end == std::string::npos) return;
      line(open_.substr(0, end));
      open_.erase(0, end + 1);
    }
  }
  // The runtime, or why there is none.
  Result<json::object> outcome() {
    shown_.clear();
    if (const json::value* error = last_.if_contains("error"); error && error->is_object())
      return fail(ErrorCode::start_failed, shown_in(error->get_object(), "message"));
    if (last_.contains("key")) return last_;
    return fail(ErrorCode::io, "the node ended before the model was loaded");
  }

 private:
  void line(const std::string& text) {
    auto page = parsed_page(text);
    if (!page) return;
    last_ = std::move(*page);
    if (last_.contains("key") || last_.contains("error")) return;
    const std::string progress = shown_in(last_, "progress");
    shown_.show(fmt::format("{}: {}{}{}", model_, shown_in(last_, "state"),
                            progress.empty() ? "" : ", ", progress));
  }

  const std::string& model_;
  std::string open_;
  json::object last_;
  PassingLine shown_;
};

}  // namespace

int ps_command(const CommandLine& line, const Settings& settings,
               const std::filesystem::path& home) {
  auto address = find_node(line.url, settings, home);
  if (!address) return ask_failed(address.error());
  const NodeClient node(std::move(*address));
  NodeRequest request;
  request.target = "/werk/v1/observability";
  if (line.json == Json::yes) {
    const auto text = node.ask(request);
    if (!text) return ask_failed(text.error());
    fmt::print("{}\n", *text);
    return 0;
  }
  const auto page = ask(node, std::move(request));
  if (!page) return ask_failed(page.error());
  const std::size_t columns = is_terminal(STDOUT_FILENO) ? kTerminalColumns : 0;
  fmt::print("{}", ps_table(*page, std::chrono::system_clock::now(), columns));
  return 0;
}

int load_command(const CommandLine& line, const Settings& settings,
                 const std::filesystem::path& home) {
  auto address = find_node(line.url, settings, home);
  if (!address) return ask_failed(address.error());
  const NodeClient node(std::move(*address));
  LoadAnswer answer(line.subject);
  const Status asked =
      node.stream(act(line.subject, "load?progress"), [&answer](std::string_view piece) {
        answer.take(piece);
        return NodeClient::GoOn::yes;
      });
  const auto runtime = answer.outcome();
  if (!asked) return ask_failed(asked.error());
  if (!runtime) return ask_failed(runtime.error());
  fmt::print("{} is loaded ({})\n", shown_in(*runtime, "model"), shown_in(*runtime, "engine"));
  return 0;
}

int unload_command(const CommandLine& line, const Settings& settings,
                   const std::filesystem::path& home) {
  auto address = find_node(line.url, settings, home);
  if (!address) return ask_failed(address.error());
  NodeRequest request = act(line.subject, "unload");
  if (line.control.now) request.body = R"({"now":true})";
  PassingLine waiting;
  waiting.show(line.control.now
                   ? fmt::format("{} is being stopped", line.subject)
                   : fmt::format("{} ends its calls (--now stops them)", line.subject));
  const auto page = ask(NodeClient(std::move(*address)), std::move(request));
  waiting.clear();
  if (!page) return ask_failed(page.error());
  const json::value* count = page->if_contains("unloaded");
  const bool none = count != nullptr && count->is_number() && count->to_number<std::int64_t>() == 0;
  fmt::print("{} {}\n", shown_in(*page, "model"), none ? "was not loaded" : "is unloaded");
  return 0;
}

int pin_command(const CommandLine& line, const Settings& settings,
                const std::filesystem::path& home) {
  auto address = find_node(line.url, settings, home);
  if (!address) return ask_failed(address.error());
  const std::string_view what = line.command == CommandId::pin ? "pin" : "unpin";
  const auto page = ask(NodeClient(std::move(*address)), act(line.subject, what));
  if (!page) return ask_failed(page.error());
  const std::string model = shown_in(*page, "model");
  if (!truth_in(*page, "pinned").value_or(false)) {
    fmt::print("{} is no longer pinned\n", model);
  } else if (truth_in(*page, "loaded").value_or(false)) {
    fmt::print("{} is pinned\n", model);
  } else {
    fmt::print("{} is pinned; it is not loaded yet (`werk load {}`)\n", model, model);
  }
  return 0;
}

// ---- logs

namespace {

void print_lines(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

// From the home's files; "" of a model that has none.
Result<std::string> lines_in_home(const CommandLine& line, const std::filesystem::path& home) {
  const engine::OutputFiles files(home / "logs");
  if (line.subject.empty()) {
    std::string all;
    for (const std::string& one : files.models()) {
      auto text = files.last_lines(one, line.control.lines);
      if (!text) return text;
      if (!text->empty()) all += engine::output_heading(one) + *text;
    }
    return all;
  }
  const auto model = model::Store(home).find(line.subject);
  // A model that was removed leaves its log.
  if (!model && !files.holds(line.subject)) return fail(model.error());
  return files.last_lines(model ? model->manifest.id : line.subject, line.control.lines);
}

int home_logs(const CommandLine& line, const std::filesystem::path& home) {
  const auto text = lines_in_home(line, home);
  if (!text) return ask_failed(text.error());
  print_lines(*text);
  if (text->empty()) fmt::print(stderr, "{}", kNothingYet);
  if (line.control.follow)
    fmt::print(stderr, "werk: no node serves this home, so nothing more will come\n");
  return 0;
}

}  // namespace

int logs_command(const CommandLine& line, const Settings& settings,
                 const std::filesystem::path& home) {
  if (line.url.empty() && !home_node(settings, home)) return home_logs(line, home);
  auto address = find_node(line.url, settings, home);
  if (!address) return ask_failed(address.error());
  NodeRequest request;
  request.target = line.subject.empty() ? std::string("/werk/v1/logs")
                                        : "/werk/v1/logs/" + path_segment(line.subject);
  request.target +=
      fmt::format("?lines={}{}", line.control.lines, line.control.follow ? "&follow=true" : "");
  std::uint64_t bytes = 0;
  const Status read =
      NodeClient(std::move(*address)).stream(request, [&bytes](std::string_view piece) {
        print_lines(piece);
        bytes += piece.size();
        return NodeClient::GoOn::yes;
      });
  if (!read) return ask_failed(read.error());
  if (bytes == 0) fmt::print(stderr, "{}", kNothingYet);
  return 0;
}

// ---- stop

int stop_command(const CommandLine& line, const Settings& settings,
                 const std::filesystem::path& home) {
  auto address = find_node(line.url, settings, home);
  if (!address) return ask_failed(address.error());
  const NodeClient node(std::move(*address));
  NodeRequest request;
  request.method = "POST";
  request.target = "/werk/v1/stop";
  const auto page = ask(node, std::move(request));
  if (!page) return ask_failed(page.error());
  PassingLine waiting;
  NodeRequest alive;
  alive.target = "/livez";
  alive.silence_max = 5s;
  while (true) {
    const bool is_there =
        line.url.empty() ? process::NodeLock::is_held(home.string()) : node.ask(alive).has_value();
    if (!is_there) break;
    waiting.show("the node ends its calls and engines");
    Status waited = process::pause(100ms);
    if (!waited) return ask_failed(waited.error());
  }
  waiting.clear();
  fmt::print("the node has ended\n");
  return 0;
}

}  // namespace werk::app
