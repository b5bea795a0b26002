// The heads of messages as plain values: the request a server was asked, and the head of an answer.
// Framing fields (Content-Length, Transfer-Encoding, Connection, Date) are the server's and the
// client's own business: they write them, and ignore the ones a caller puts into Headers, except
// `Connection: close`, which is obeyed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "werk/http/headers.hpp"

namespace werk::http {

struct Request {
  std::string method;
  std::string target;  // as it was sent; absolute-form and "*" included
  std::string path;  // raw (percent-encoded) and without the query; of an absolute-form target only
                     // the path
  std::string query;  // after the first '?', without it
  Headers headers;
  int version = 11;  // 10 or 11
  std::optional<std::uint64_t> content_length;
  std::string peer;  // "127.0.0.1:51234", "unix"
  bool peer_is_loopback = false;
};

struct ResponseHead {
  int status = 200;
  Headers headers;
};

// The body of an answer that the server gives by itself (400, 408, 431, 500, 503); JSON.
using ErrorBody = std::string (*)(int status, std::string_view message);

}  // namespace werk::http
