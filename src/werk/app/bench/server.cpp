#include "werk/app/bench/server.hpp"

#include <fmt/format.h>

#include <boost/json/parse.hpp>

#include "werk/base/text.hpp"
#include "werk/engine/remote/remote_url.hpp"

namespace werk::app::bench {

namespace json = boost::json;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t kPageBytesMax = std::size_t{16} << 20;
constexpr auto kPageLimit = 5s;

}  // namespace

Result<Server> server_at(const NodeAddress& node) {
  const auto url = engine::remote::parse_remote_url(node.url);
  if (!url) {
    return fail(ErrorCode::invalid_request,
                fmt::format("{}: {}", printable(node.url), url.error().message));
  }
  Server server;
  server.address.host = url->host;
  server.address.port = url->port;
  if (url->transport == engine::remote::Transport::tls) server.address.tls_name = url->host;
  server.api = url->prefix;
  server.observability = url->beside("/werk/v1/observability");
  server.url = node.url;
  server.key = node.key;
  return server;
}

http::Headers headers_for(const Server& server, Dialect dialect) {
  http::Headers headers;
  headers.add("Content-Type", "application/json");
  headers.add("Accept", "text/event-stream");
  headers.add("User-Agent", "werk-bench");
  if (dialect == Dialect::anthropic) headers.add("anthropic-version", "2023-06-01");
  if (server.key.empty()) return headers;
  if (dialect == Dialect::anthropic) headers.add("x-api-key", server.key);
  headers.add("Authorization", "Bearer " + server.key);
  return headers;
}

async::awaitable<std::optional<json::object>> observe(http::Client& client, async::Clock& clock,
                                                      const Server& server, std::stop_token stop) {
  http::ClientRequest request;
  request.method = "GET";
  request.target = server.observability;
  request.headers.add("Accept", "application/json");
  if (!server.key.empty()) request.headers.add("Authorization", "Bearer " + server.key);
  const async::Deadline limit(clock, kPageLimit, stop);
  auto answer =
      co_await client.fetch(server.address, std::move(request), kPageBytesMax, limit.token());
  if (!answer || answer->status != 200) co_return std::nullopt;
  boost::system::error_code error;
  json::value page = json::parse(answer->body, error);
  if (error || !page.is_object() || !page.get_object().contains("runtimes")) co_return std::nullopt;
  co_return std::move(page.get_object());
}

std::string version_in(const json::object& page) {
  const json::value whole(page);
  boost::system::error_code error;
  const json::value* version = whole.find_pointer("/node/version", error);
  if (version == nullptr || !version->is_string()) return {};
  return "werk " + printable(std::string_view(version->get_string()));
}

}  // namespace werk::app::bench
