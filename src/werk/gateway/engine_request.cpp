#include "werk/gateway/engine_request.hpp"

#include "werk/base/text.hpp"
#include "werk/gateway/hops.hpp"

namespace werk::gateway {

http::ClientRequest engine_request(const engine::HttpTarget& target, std::string path,
                                   std::string accept, std::string_view body,
                                   const RequestOrigin& origin) {
  http::ClientRequest request;
  request.method = "POST";
  request.target = std::move(path);
  request.headers.add("Content-Type", "application/json");
  if (!accept.empty()) request.headers.add("Accept", std::move(accept));
  if (!target.authorization.empty()) request.headers.add("Authorization", target.authorization);
  if (target.ownership == engine::Ownership::external) {
    request.headers.add(std::string(kHopsHeader),
                        hops_onward(origin.request.headers, origin.node_id));
  }
  request.body = body;
  return request;
}

http::Address address_of(const engine::HttpTarget& target) {
  return {target.unix_path, target.host, target.port, target.tls_name};
}

void carry_messages_headers(const http::Request& request, http::Headers& out) {
  for (const http::Header& header : request.headers) {
    const bool carried = equals_ignoring_case(header.name, "anthropic-version") ||
                         equals_ignoring_case(header.name, "anthropic-beta");
    if (carried) out.add(header.name, header.value);
  }
}

}  // namespace werk::gateway
