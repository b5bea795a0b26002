#include "tests/api/api_node.hpp"

#include <fstream>

#include "werk/base/assert.hpp"
#include "werk/base/digest.hpp"
#include "werk/gateway/errors.hpp"
#include "werk/model/model_id.hpp"

namespace werk::test {
namespace {

void install(const std::filesystem::path& home, const ModelLine& line) {
  model::Manifest manifest;
  manifest.id = line.id;
  manifest.aliases = line.aliases;
  manifest.name = line.id;
  manifest.architecture = "llama";
  manifest.quantization = "Q4_K_M";
  manifest.parameters = 135000000;
  manifest.training_context_tokens = 4096;
  manifest.chat_template = {true, line.tools, true};
  manifest.capabilities.chat = true;
  manifest.capabilities.completion = true;
  manifest.files = {
      {model::FileRole::weights, "files/m.gguf", 98000000, sha256_hex(line.id), false, 0}};
  manifest.imported_at = "2026-01-02T03:04:05Z";
  const std::filesystem::path folder = home / "models" / model::folder_name(line.id);
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "manifest.json") << model::write_manifest(manifest);
}

std::vector<routing::AliasRule> alias_rules(const NodeLines& lines) {
  std::vector<routing::AliasRule> rules;
  for (const std::string& line : lines.alias_rules) {
    const std::size_t equals = line.find('=');
    rules.push_back({line.substr(0, equals), line.substr(equals + 1)});
  }
  return rules;
}

runtime::CacheSettings cache_settings(const NodeLines& lines) {
  runtime::CacheSettings settings;
  settings.waiting_max = lines.waiting_max;
  if (lines.resident_max > 0) settings.pools["scripted"].capacity = lines.resident_max;
  settings.capacity_wait = std::chrono::seconds(0);
  settings.idle_timeout = lines.idle_timeout;
  return settings;
}

engine::Masker shown_masker(const TemporaryFolder& home) {
  engine::Masker masker;
  masker.hide(home.path().string(), "<home>");
  return masker;
}

gateway::GatewaySettings gateway_settings(const NodeLines& lines) {
  gateway::GatewaySettings settings;
  settings.access.keys = lines.keys;
  settings.access.allowed_hosts = lines.allowed_hosts;
  settings.access.host_check =
      lines.keys.empty() ? gateway::HostCheck::on : gateway::HostCheck::off;
  settings.chat.default_model = lines.default_model;
  if (lines.body_bytes_max) settings.chat.body_bytes_max = *lines.body_bytes_max;
  if (lines.buffered_bytes_max) settings.buffered_bodies_bytes_max = *lines.buffered_bytes_max;
  if (lines.engine_silence) settings.chat.engine_silence = *lines.engine_silence;
  settings.prompt_edits =
      lines.prompt_edits ? gateway::PromptEdits::apply : gateway::PromptEdits::none;
  settings.chat.early_headers = lines.early_headers;
  settings.chat.defaults = lines.defaults;
  settings.node_id = "this-node";
  settings.node = {"1.2.3", 77, std::chrono::system_clock::time_point{}};
  return settings;
}

}  // namespace

ApiNode::ApiNode(async::Executor executor, async::Offload& offload, const NodeLines& lines,
                 std::vector<ModelLine> models)
    : model_lines_(std::move(models)),
      engine_server_(executor),
      engine_(executor, clock_, folder_ / "engine.sock", model_lines_, lines.slots),
      store_(folder_.path()),
      models_(store_, folder_.path(), offload),
      loop_lag_(clock_),
      router_({&engine_}, alias_rules(lines)),
      cache_(executor, clock_, cache_settings(lines)),
      client_(executor, clock_, {}),
      output_(executor, offload, engine::OutputFiles(folder_ / "logs"), shown_masker(folder_)) {
  for (const ModelLine& line : model_lines_) install(folder_.path(), line);
  engine_server_.listen_unix(folder_ / "engine.sock");
  cache_.set_sink(recorder_);
  const gateway::GatewayParts parts{clock_,  models_, router_,   cache_,
                                    client_, output_, recorder_, loop_lag_};
  gateway_ = std::make_unique<gateway::Gateway>(gateway_settings(lines), parts);
  gateway_->set_on_stop([this] {
    gateway_->begin_drain();
    cache_.begin_shutdown();
  });
  server_ = std::make_unique<http::Server>(executor, clock_, http::ServerLimits{}, *gateway_);
  server_->set_error_body(gateway::server_error_body);
  gateway_->set_connections([this] { return server_->connections(); });
  WERK_ASSERT(server_->listen_unix(socket()));
}

async::awaitable<void> ApiNode::close() {
  const std::stop_token never;
  co_await output_.end_followers(never);
  co_await gateway_->end_followers(never);
  co_await server_->close();
  cache_.begin_shutdown();
  cache_.stop_leased();
  co_await cache_.stopped();
  co_await engine_server_.close();
  co_await output_.close();
}

}  // namespace werk::test
