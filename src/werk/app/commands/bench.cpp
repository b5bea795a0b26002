#include "werk/app/commands/bench.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <boost/json/serialize.hpp>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

#include "werk/app/bench/comparison.hpp"
#include "werk/app/bench/machine.hpp"
#include "werk/app/bench/measurement.hpp"
#include "werk/app/bench/report.hpp"
#include "werk/app/terminal.hpp"
#include "werk/app/version.hpp"
#include "werk/base/text.hpp"
#include "werk/base/timestamp.hpp"

namespace werk::app {

namespace fs = std::filesystem;

namespace {

constexpr std::uint32_t kPairs = 7;  // with two servers, unless --repeat says otherwise

Result<std::string> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(std::istreambuf_iterator<char>(file), {});
  if (file.bad() || !file.is_open())
    return fail(ErrorCode::io, fmt::format("cannot read {}: {}", path, std::strerror(errno)));
  return text;
}

// Said before anything is measured, not after.
Status check_output(const std::string& path) {
  if (path.empty()) return {};
  std::error_code error;
  const fs::path folder = fs::path(path).parent_path();
  const std::string place = fs::exists(path, error) ? path : folder.empty() ? "." : folder.string();
  if (!fs::is_directory(path, error) && ::access(place.c_str(), W_OK) == 0) return {};
  return fail(ErrorCode::io, fmt::format("--output {} can't be written", path));
}

Status write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text << '\n';
  file.close();
  if (file) return {};
  return fail(ErrorCode::io, fmt::format("cannot write {}: {}", path, std::strerror(errno)));
}

tl::unexpected<Error> usage(std::string message) {
  return fail(ErrorCode::invalid_request, std::move(message));
}

Result<bench::Prompts> prompts_of(const BenchOptions& options) {
  bench::Prompts prompts;
  if (!options.prompts.empty()) {
    if (options.prompt_tokens > 0 || options.shared_prefix_tokens > 0)
      return usage("--prompts and --prompt-tokens name two kinds of prompts; one is needed");
    auto text = read_file(options.prompts);
    if (!text) return pass_on(text);
    return bench::read_prompts(*text);
  }
  if (options.prompt_tokens == 0 && options.shared_prefix_tokens > 0)
    return usage("--shared-prefix-tokens needs --prompt-tokens, for what differs behind it");
  if (options.prompt_tokens == 0) return prompts;
  prompts.kind = bench::PromptKind::made;
  prompts.tokens = options.prompt_tokens;
  prompts.shared_tokens = options.shared_prefix_tokens;
  return prompts;
}

Result<bench::Plan> plan_of(const BenchOptions& options, const Settings& settings) {
  bench::Plan plan;
  plan.models = options.models;
  if (plan.models.empty() && settings.model) plan.models = {*settings.model};
  if (plan.models.empty())
    return usage("name what is measured: --model NAME, several times if need be");
  const std::size_t others = options.against.size();
  if (others > 1 && others != plan.models.size()) {
    return usage(fmt::format("--against names {} servers: name one for all models, or one for each "
                             "--model",
                             others));
  }
  if (!options.rates.empty() && !options.concurrency.empty())
    return usage("--rate waits for nobody, so it goes without --concurrency");
  plan.dialect = options.dialect;
  plan.requests = options.requests;
  plan.max_tokens = options.max_tokens;
  plan.seed = options.seed;
  plan.end_of_sequence = options.end_of_sequence;
  for (const double rate : options.rates) plan.levels.push_back({0, rate});
  for (const std::uint32_t callers : options.concurrency) plan.levels.push_back({callers, 0});
  if (plan.levels.empty()) plan.levels.push_back({1, 0});
  plan.repeat = options.repeat > 0 ? options.repeat : options.against.empty() ? 1 : kPairs;
  auto prompts = prompts_of(options);
  if (!prompts) return pass_on(prompts);
  plan.prompts = std::move(*prompts);
  return plan;
}

Result<bench::Server> find_server(const std::string& url, std::string_view option,
                                  const Settings& settings, const fs::path& home) {
  auto address = find_node(url, settings, home, option);
  if (!address) return pass_on(address);
  auto server = bench::server_at(*address);
  if (!server && !url.empty())
    server.error().message = fmt::format("{} {}", option, server.error().message);
  return server;
}

// The second side.
Result<std::vector<bench::Server>> find_against(const std::vector<std::string>& urls,
                                                const Settings& settings, const fs::path& home) {
  std::vector<bench::Server> servers;
  for (const std::string& url : urls) {
    auto server = find_server(url, "--against", settings, home);
    if (!server) return pass_on(server);
    servers.push_back(std::move(*server));
  }
  return servers;
}

int measure(bench::Session& session, bench::Server first, std::vector<bench::Server> against,
            const CommandLine& line) {
  bench::Measurement measurement(session, std::move(first), std::move(against));
  const Status measured = measurement.run();
  if (!measured && !session.interrupted) return failed(measured.error());
  bench::add_notes(session);
  const std::string json = boost::json::serialize(bench::report_of(session));
  const std::string& output = line.bench.output;
  const Status written = output.empty() ? Status() : write_file(output, json);
  fmt::print("{}", line.json == Json::yes ? json + "\n" : bench::table_of(session));
  if (!written) return failed(written.error());
  if (session.interrupted) return kSignalStatus;
  return bench::failures_of(session) == 0 ? 0 : 1;
}

}  // namespace

int bench_command(const CommandLine& line, const Settings& settings, const fs::path& home) {
  bench::Session session;
  auto plan = plan_of(line.bench, settings);
  if (!plan) {
    const int status = failed(plan.error());
    return plan.error().code == ErrorCode::invalid_request ? kUsageStatus : status;
  }
  session.plan = std::move(*plan);
  const Status writable = check_output(line.bench.output);
  if (!writable) return failed(writable.error());
  auto first = find_server(line.url, "--url", settings, home);
  if (!first) return failed(first.error());
  session.first.url = first->url;
  auto against = find_against(line.bench.against, settings, home);
  if (!against) return failed(against.error());
  if (!against->empty()) {
    std::vector<std::string> urls;
    for (const bench::Server& server : *against) urls.push_back(server.url);
    session.against = bench::ServerRecord{fmt::format("{}", fmt::join(urls, ", ")), {}};
  }
  session.warmup = line.bench.warmup == Warmup::yes;
  session.werk_version = version_text();
  session.started_at = timestamp(std::chrono::system_clock::now());
  session.machine = bench::this_machine();
  return measure(session, std::move(*first), std::move(*against), line);
}

int bench_compare_command(const CommandLine& line) {
  std::vector<boost::json::object> reports;
  for (const std::string& path : line.words) {
    const auto text = read_file(path);
    if (!text) return failed(text.error());
    auto report = bench::read_report(*text, path);
    if (!report) return failed(report.error());
    reports.push_back(std::move(*report));
  }
  fmt::print("{}", bench::comparison_of(reports[0], reports[1]));
  return 0;
}

}  // namespace werk::app
