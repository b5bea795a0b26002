// The server that a benchmark asks: where it is, what it lets itself be asked with, and what it
// tells of itself (the observability page of a Werk node, the Server header of any). Owned by the
// command. Its questions run on the command's loop, beside the load.
#pragma once

#include <boost/json/object.hpp>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "werk/app/bench/plan.hpp"
#include "werk/app/node_client.hpp"
#include "werk/async/clock.hpp"
#include "werk/http/client.hpp"

namespace werk::app::bench {

struct Server {
  http::Address address;
  std::string api;            // "/v1": what the paths of the API begin with
  std::string observability;  // the path of a Werk node's page
  std::string url;            // as people write it
  std::string key;            // empty: none is sent
};

// Where the API lies, `/v1` if no path is named; invalid_request for what is no such URL.
Result<Server> server_at(const NodeAddress& node);

http::Headers headers_for(const Server& server, Dialect dialect);

// The page of a Werk node; none from anybody else, or where none comes within some seconds.
async::awaitable<std::optional<boost::json::object>> observe(http::Client& client,
                                                             async::Clock& clock,
                                                             const Server& server,
                                                             std::stop_token stop);
// "werk 0.1.0"; empty if the page doesn't tell.
std::string version_in(const boost::json::object& page);

}  // namespace werk::app::bench
