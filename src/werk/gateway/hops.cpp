#include "werk/gateway/hops.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "werk/base/text.hpp"

namespace werk::gateway {
namespace {

bool is_id(std::string_view text) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
  };
  return !text.empty() && text.size() <= kHopIdBytesMax && std::ranges::all_of(text, fits);
}

// Every element, those that are no ids too; empty ones don't count (RFC 9110, 5.6.1).
std::vector<std::string_view> hops_of(const http::Headers& headers) {
  std::vector<std::string_view> hops;
  for (const http::Header& header : headers) {
    if (!equals_ignoring_case(header.name, kHopsHeader)) continue;
    std::string_view rest = header.value;
    while (!rest.empty()) {
      const std::size_t comma = std::min(rest.find(','), rest.size());
      const std::string_view hop = trim(rest.substr(0, comma));
      if (!hop.empty()) hops.push_back(hop);
      rest.remove_prefix(std::min(comma + 1, rest.size()));
    }
  }
  return hops;
}

tl::unexpected<Error> refused(ErrorCode code, std::string message) {
  return fail(code, Origin::client, std::move(message));
}

}  // namespace

Status check_hops(const http::Headers& headers, std::string_view own_id) {
  const std::vector<std::string_view> hops = hops_of(headers);
  if (!std::ranges::all_of(hops, is_id)) {
    return refused(ErrorCode::invalid_request,
                   fmt::format("the header {} can't be read; it is a list of node ids, and only "
                               "nodes send it",
                               kHopsHeader));
  }
  const auto own = std::ranges::find(hops, own_id);
  if (own != hops.end()) {
    return refused(ErrorCode::loop_detected,
                   fmt::format("the request has come back to this node ({}), through {} other(s): "
                               "the nodes have one another as remotes for this model. Take the "
                               "model out of the list of one of them (`models` of its "
                               "[remotes.NAME]), or install it where it should run",
                               own_id, hops.end() - own - 1));
  }
  if (hops.size() > kHopsMax) {
    return refused(ErrorCode::loop_detected,
                   fmt::format("the request has come through {} nodes, and {} are the most: each "
                               "has the next as a remote for this model. Name the node that runs "
                               "it as the remote of the first",
                               hops.size(), kHopsMax));
  }
  return {};
}

std::string hops_onward(const http::Headers& headers, std::string_view own_id) {
  std::string list;
  for (const std::string_view hop : hops_of(headers)) {
    list += hop;
    list += ',';
  }
  list += own_id;
  return list;
}

}  // namespace werk::gateway
