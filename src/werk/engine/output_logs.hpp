// OutputLogs: where engines leave what they print, and how people read it. Lines are taken on the
// loop, written to OutputFiles off it, in order and one job at a time, and handed to whoever
// follows them. A disk that is slow or full costs lines and one note in the log, never a call.
// Owned by the node, which awaits close(); loop thread only.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "werk/async/offload.hpp"
#include "werk/async/task_group.hpp"
#include "werk/engine/masker.hpp"
#include "werk/engine/output_files.hpp"

namespace werk::engine {

class OutputLogs;

// Somebody who reads along: first what there was, then what comes. Ends when the logs do.
class OutputFollower {
 public:
  // Made by OutputLogs::follow().
  OutputFollower(OutputLogs& logs, std::optional<std::string> model);
  ~OutputFollower();
  OutputFollower(const OutputFollower&) = delete;
  OutputFollower& operator=(const OutputFollower&) = delete;

  // The next text; "" at the end. Fails with `cancelled`.
  async::awaitable<Result<std::string>> next(std::stop_token stop);

 private:
  friend class OutputLogs;
  void take(const std::string& model, std::string_view text);

  OutputLogs& logs_;
  std::optional<std::string> model_;  // none: all
  std::string last_model_;
  std::string queue_;
  std::size_t dropped_lines_ = 0;
  bool ended_ = false;
  async::Event arrived_;
};

class OutputLogs {
 public:
  static constexpr std::size_t kUnwrittenBytesMax = 1u << 20;  // and as much for each follower

  // `shown` hides what must not leave the node; see masker().
  OutputLogs(async::Executor executor, async::Offload& offload, OutputFiles files, Masker shown);
  OutputLogs(const OutputLogs&) = delete;
  OutputLogs& operator=(const OutputLogs&) = delete;

  // A line of a model's engine, without its end. Made printable here; keys are its caller's to
  // hide.
  void line(const std::string& model, std::string_view text);
  // The line that heads each start: when, and the launch line.
  void begin(const std::string& model, std::string_view launch_line);

  // The last lines of a model's log, or of all with headings.
  async::awaitable<Result<std::string>> last_lines(std::optional<std::string> model,
                                                   std::size_t lines, std::stop_token stop);
  // The same and what comes from then on; nothing is lost or told twice between them.
  async::awaitable<Result<std::unique_ptr<OutputFollower>>> follow(std::optional<std::string> model,
                                                                   std::size_t lines,
                                                                   std::stop_token stop);
  const Masker& masker() const { return shown_; }
  const OutputFiles& files() const { return files_; }

  // Ends every follower; returns when they are gone or `stop` says so. Later ones end at once.
  async::awaitable<void> end_followers(std::stop_token stop);
  // Writes what is left. Lines that come later are dropped.
  async::awaitable<void> close();

 private:
  friend class OutputFollower;
  using Batch = std::map<std::string, std::string>;  // model -> text

  void take(const std::string& model, std::string text);
  async::awaitable<void> write_out();
  async::awaitable<bool> take_disk(std::stop_token stop);
  void free_disk();
  async::awaitable<Result<std::string>> read(std::optional<std::string> model, std::size_t lines);
  void note(const Status& written);

  async::Executor executor_;
  async::Offload& offload_;
  OutputFiles files_;
  Masker shown_;
  async::TaskGroup tasks_;
  async::Event disk_free_;
  async::Event followers_gone_;
  Batch unwritten_;
  std::size_t unwritten_bytes_ = 0;
  std::size_t dropped_lines_ = 0;
  std::vector<OutputFollower*> followers_;
  bool writing_ = false;
  bool ended_ = false;
  bool closed_ = false;
  bool told_ = false;  // that the disk takes nothing
};

// What an error about an engine that printed something says at its end.
std::string output_hint(const std::string& model);

}  // namespace werk::engine
