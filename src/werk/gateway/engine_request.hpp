// What is sent to an engine's server: its head is made from nothing, so that nothing of the
// client's own head goes on, its key least of all; only what the dialect and other nodes need is
// carried over. Pure.
#pragma once

#include <string>
#include <string_view>

#include "werk/engine/engine.hpp"
#include "werk/http/client.hpp"
#include "werk/http/message.hpp"

namespace werk::gateway {

struct RequestOrigin {
  const http::Request& request;  // the client's
  std::string_view node_id;
};

// `body` must outlive the request. Servers of others get the list of nodes that it came through.
http::ClientRequest engine_request(const engine::HttpTarget& target, std::string path,
                                   std::string accept, std::string_view body,
                                   const RequestOrigin& origin);

http::Address address_of(const engine::HttpTarget& target);

// `anthropic-version` and `anthropic-beta`, for servers that speak Messages themselves.
void carry_messages_headers(const http::Request& request, http::Headers& out);

}  // namespace werk::gateway
