#include "bench/support/programs.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json.hpp>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <stdexcept>

#include "bench/support/load.hpp"
#include "tests/support/tiny_gguf.hpp"

extern char** environ;

namespace werk::bench {
namespace fs = std::filesystem;

namespace {

constexpr std::chrono::seconds kStartLimit{60};

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::vector<std::string> split_at_zeros(const std::string& text) {
  std::vector<std::string> words;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\0', at), text.size());
    words.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

bool is_measured_setting(std::string_view entry) {
  return entry.starts_with("WERK_") || entry.starts_with("LLAMA_") ||
         entry.starts_with("BENCH_MOCK_");
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> list;
  for (std::string& text : texts) list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

std::string variable(const char* name, std::string otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : std::string(value);
}

// The word behind one of the flags, which mean the same to different engines.
std::string word_behind(const std::vector<std::string>& words,
                        std::initializer_list<std::string_view> flags) {
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    if (std::ranges::find(flags, words[i]) != flags.end()) return words[i + 1];
  }
  return "";
}

}  // namespace

std::uint16_t free_port() {
  const int file = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (::bind(file, generic, size) != 0 || ::getsockname(file, generic, &size) != 0) {
    throw std::runtime_error("no free port");
  }
  ::close(file);
  return ntohs(address.sin_port);
}

Folder::Folder() {
  std::string name = (fs::temp_directory_path() / "werk-bench-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
  path_ = name;
}

Folder::~Folder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

void pause_a_millisecond() { ::poll(nullptr, 0, 1); }

bool wait_until(const std::function<bool()>& met, std::chrono::milliseconds limit) {
  const SteadyTime end = steady_now() + limit;
  while (!met()) {
    if (steady_now() >= end) return false;
    pause_a_millisecond();
  }
  return true;
}

Child::Child(std::vector<std::string> words, const std::vector<std::string>& environment,
             fs::path log)
    : log_(std::move(log)) {
  std::vector<std::string> variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (!is_measured_setting(*entry)) variables.emplace_back(*entry);
  }
  variables.insert(variables.end(), environment.begin(), environment.end());
  const std::vector<char*> argv = pointers(words);
  const std::vector<char*> envp = pointers(variables);
  const int out = ::open(log_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  begun_ = steady_now();
  pid_ = ::vfork();
  if (pid_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    ::dup2(out, STDOUT_FILENO);
    ::dup2(out, STDERR_FILENO);
    ::execvpe(argv[0], argv.data(), envp.data());
    ::_exit(127);
  }
  ::close(out);
  if (pid_ < 0) throw std::runtime_error("can't start " + words.front());
}

Child::~Child() {
  if (running()) stop(SIGKILL);
}

bool Child::running() {
  if (running_ && ::waitpid(pid_, &status_, WNOHANG) == pid_) running_ = false;
  return running_;
}

void Child::stop(int signal) {
  if (running()) ::kill(pid_, signal);
  wait();
}

int Child::wait() {
  while (running_ && ::waitpid(pid_, &status_, 0) == pid_) running_ = false;
  running_ = false;
  return WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_);
}

std::string Child::log_text() const { return read_file(log_); }

double cpu_seconds(pid_t pid) {
  clockid_t clock{};
  timespec time{};
  if (::clock_getcpuclockid(pid, &clock) != 0 || ::clock_gettime(clock, &time) != 0) return 0;
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

double resident_kib(pid_t pid, std::string_view kind) {
  const std::string status = read_file(fs::path("/proc") / std::to_string(pid) / "status");
  const std::size_t at = status.find(fmt::format("\n{}:", kind));
  return at == std::string::npos ? 0 : std::atof(status.c_str() + at + kind.size() + 2);
}

std::size_t descriptors_of(pid_t pid) {
  std::error_code error;
  const fs::directory_iterator all(fs::path("/proc") / std::to_string(pid) / "fd", error);
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

std::vector<pid_t> children_of(pid_t parent, const std::string& word) {
  std::vector<pid_t> found;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator("/proc", error)) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const std::string stat = read_file(entry.path() / "stat");
    const std::size_t end = stat.rfind(')');
    if (end == std::string::npos || end + 4 > stat.size()) continue;
    const auto its_parent = static_cast<pid_t>(std::atoi(stat.c_str() + end + 4));
    if (its_parent != parent) continue;
    if (read_file(entry.path() / "cmdline").find(word) == std::string::npos) continue;
    found.push_back(static_cast<pid_t>(std::stol(name)));
  }
  return found;
}

Setting read_setting() {
  Setting setting;
  setting.werk = variable("BENCH_WERK", "build/release/werk");
  setting.mock = variable("BENCH_MOCK", "build/release/bench/bench_mock");
  setting.home = variable("WERK_HOME", "");
  setting.real_engine = variable("BENCH_LLAMA_SERVER", "");
  setting.model = variable("BENCH_MODEL", "smollm2");
  setting.quick = variable("BENCH_QUICK", "") == "1";
  return setting;
}

Node::Node(const Setting& setting, const fs::path& home, const std::vector<std::string>& arguments,
           const std::vector<std::string>& environment, const fs::path& log)
    : child_(
          [&] {
            std::vector<std::string> words{setting.werk, "--model-home", home.string(),
                                           "serve",      "--port",       "0"};
            words.insert(words.end(), arguments.begin(), arguments.end());
            return words;
          }(),
          environment, log) {
  const auto serves = [&] {
    if (!child_.running()) throw std::runtime_error("the node ended:\n" + child_.log_text());
    boost::system::error_code error;
    const auto value = boost::json::parse(read_file(home / "run" / "node.json"), error);
    if (error || !value.is_object()) return false;
    const auto* pid = value.get_object().if_contains("pid");
    const auto* address = value.get_object().if_contains("address");
    if (pid == nullptr || address == nullptr || pid->to_number<pid_t>() != child_.pid()) {
      return false;
    }
    const std::string text(address->as_string());
    port_ = static_cast<std::uint16_t>(std::atoi(text.c_str() + text.rfind(':') + 1));
    return true;
  };
  if (!wait_until(serves, kStartLimit)) throw std::runtime_error("the node never served");
}

EngineHandle Node::engine(const std::string& part) const {
  for (const pid_t pid : children_of(pid(), part)) {
    const fs::path process = fs::path("/proc") / std::to_string(pid);
    EngineHandle handle;
    handle.pid = pid;
    handle.words = split_at_zeros(read_file(process / "cmdline"));
    handle.socket = word_behind(handle.words, {"--host", "--uds"});
    handle.alias = word_behind(handle.words, {"--alias", "--served-model-name"});
    for (const std::string& entry : split_at_zeros(read_file(process / "environ"))) {
      if (entry.starts_with("LLAMA_API_KEY=") || entry.starts_with("VLLM_API_KEY="))
        handle.key = entry.substr(entry.find('=') + 1);
    }
    if (!handle.socket.empty()) return handle;
  }
  throw std::runtime_error("the node has no engine for " + part);
}

void Node::stop() { child_.stop(SIGTERM); }

void load_model(const Endpoint& node, std::string_view model) {
  const std::string body = fmt::format(
      R"({{"model":"{}","messages":[{{"role":"user","content":"Hi"}}],"max_tokens":1}})", model);
  const Answer first = ask(node, http_request("POST", target_of(Dialect::openai), body));
  if (first.status != 200) throw std::runtime_error("the first answer failed: " + first.body);
}

void import_model(const Setting& setting, const Folder& folder, const std::string& home,
                  const fs::path& path, const std::string& model,
                  const std::vector<std::string>& more) {
  std::vector<std::string> words{setting.werk, "--model-home", (folder / home).string(),
                                 "import",     path.string(),  "--name",
                                 model};
  words.insert(words.end(), more.begin(), more.end());
  Child import(words, {}, folder / "import.log");
  if (import.wait() != 0) throw std::runtime_error("import failed:\n" + import.log_text());
}

void make_home(const Setting& setting, const Folder& folder, const std::string& home,
               const std::vector<std::string>& models) {
  for (const std::string& model : models) {
    test::TinyGgufOptions options;
    options.name = model;  // equal files would share one runtime
    const fs::path file = folder / (model + ".gguf");
    if (!test::write_tiny_gguf(file, options)) throw std::runtime_error("can't write a model");
    import_model(setting, folder, home, file, model);
  }
}

EngineFiles engine_files(const Setting& setting, const Folder& folder) {
  std::vector<std::string> environment;
  if (!setting.real_engine.empty()) {
    environment.push_back("WERK_LLAMA_SERVER=" + setting.real_engine);
  }
  Node node(setting, setting.home,
            {"--backend", "llama-cpu", "--ctx-size", "1024", "--model", setting.model,
             "--log-level", "warn"},
            environment, folder / "first.log");
  load_model(node.endpoint(), setting.model);
  const std::vector<std::string> words = node.engine().words;
  node.stop();
  return {words.front(), *(std::ranges::find(words, "-m") + 1)};
}

void make_copies(const Setting& setting, const Folder& folder, const std::string& home,
                 const fs::path& file, const std::vector<std::string>& models) {
  std::size_t bytes = 0;
  for (const std::string& model : models) {
    const fs::path copy = folder / (model + ".gguf");
    fs::copy_file(file, copy, fs::copy_options::overwrite_existing);
    std::ofstream(copy, std::ios::app) << std::string(bytes++, '\0');
    import_model(setting, folder, home, copy, model);
  }
}

Nginx::Nginx(const Folder& folder, const std::string& name, const std::string& upstream_socket,
             AccessLog access_log)
    : port_(free_port()) {
  const fs::path place = folder / name;
  fs::create_directories(place);
  const std::string path = place.string();
  const std::string log =
      access_log == AccessLog::on ? fmt::format("{}/access.log combined", path) : "off";
  std::ofstream(place / "nginx.conf") << fmt::format(
      R"({0}daemon off;
worker_processes 1;
pid {1}/nginx.pid;
error_log {1}/error.log;
worker_rlimit_nofile 8192;
events {{ worker_connections 8192; }}
http {{
  access_log {2};
  client_body_temp_path {1}/body;
  proxy_temp_path {1}/proxy;
  fastcgi_temp_path {1}/fastcgi;
  scgi_temp_path {1}/scgi;
  uwsgi_temp_path {1}/uwsgi;
  tcp_nodelay on;
  keepalive_timeout 1h;
  keepalive_requests 1000000000;
  upstream engine {{
    server unix:{3};
    keepalive 256;
    keepalive_requests 1000000000;
    keepalive_timeout 1h;
  }}
  server {{
    listen 127.0.0.1:{4};
    location / {{
      proxy_pass http://engine;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_buffering off;
    }}
  }}
}}
)",
      // Started by root, its worker stays root: the engine's folder lets nobody else in.
      ::geteuid() == 0 ? "user root;\n" : "", path, log, upstream_socket, port_);
  child_ = std::make_unique<Child>(
      std::vector<std::string>{"nginx", "-p", path, "-c", path + "/nginx.conf", "-e",
                               path + "/error.log"},
      std::vector<std::string>{}, place / "output.log");
  const auto serves = [&] {
    if (!child_->running()) {
      throw std::runtime_error("nginx ended:\n" + child_->log_text() +
                               read_file(place / "error.log"));
    }
    const int file = try_connect(endpoint(), Blocking::yes);
    if (file >= 0) ::close(file);
    return file >= 0;
  };
  if (!wait_until(serves, kStartLimit)) throw std::runtime_error("nginx never served");
}

pid_t Nginx::worker() const {
  std::vector<pid_t> workers;
  const auto found = [&] {
    workers = children_of(child_->pid(), "worker process");
    return !workers.empty();
  };
  if (!wait_until(found, kStartLimit)) throw std::runtime_error("nginx has no worker");
  return workers.front();
}

Nginx::~Nginx() { child_->stop(SIGTERM); }

}  // namespace werk::bench
