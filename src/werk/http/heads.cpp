#include "werk/http/heads.hpp"

#include <algorithm>
#include <charconv>

#include "werk/base/text.hpp"

namespace werk::http {

namespace {

constexpr std::string_view kLineEnd = "\r\n";

void append_number(std::string& out, std::uint64_t number) {
  std::array<char, 20> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number);
  out.append(digits.data(), end.ptr);
}

template <class IsUnfit>
void append_replacing(std::string& out, std::string_view text, IsUnfit is_unfit, char instead) {
  const std::size_t begin = out.size();
  out.append(text);
  std::replace_if(out.begin() + static_cast<std::ptrdiff_t>(begin), out.end(), is_unfit, instead);
}

// A name or a value may end neither its line nor the text.
void append_safe(std::string& out, std::string_view text) {
  const auto is_unsafe = [](char letter) {
    return letter == '\r' || letter == '\n' || letter == '\0';
  };
  append_replacing(out, text, is_unsafe, ' ');
}

void append_field(std::string& out, std::string_view name, std::string_view value) {
  out.append(name).append(": ");
  append_safe(out, value);
  out.append(kLineEnd);
}

bool frames_the_message(std::string_view name) {
  switch (name.size()) {
    case 4: return equals_ignoring_case(name, "date");
    case 10:
      return equals_ignoring_case(name, "connection") || equals_ignoring_case(name, "keep-alive");
    case 14: return equals_ignoring_case(name, "content-length");
    case 17: return equals_ignoring_case(name, "transfer-encoding");
    default: return false;
  }
}

// A name is a token; what could not be one is made one rather than sent.
void append_name(std::string& out, std::string_view name) {
  if (name.empty()) name = "X-Unnamed";
  const auto is_unfit = [](char letter) { return letter <= ' ' || letter == 127 || letter == ':'; };
  append_replacing(out, name, is_unfit, '-');
}

void append_fields(std::string& out, const Headers& headers) {
  for (const Header& field : headers) {
    if (frames_the_message(field.name)) continue;
    append_name(out, field.name);
    out.append(": ");
    append_safe(out, field.value);
    out.append(kLineEnd);
  }
}

}  // namespace

std::string_view reason_phrase(int status) {
  switch (status) {
    case 200: return "OK";
    case 201: return "Created";
    case 202: return "Accepted";
    case 204: return "No Content";
    case 301: return "Moved Permanently";
    case 302: return "Found";
    case 304: return "Not Modified";
    case 307: return "Temporary Redirect";
    case 308: return "Permanent Redirect";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 408: return "Request Timeout";
    case 409: return "Conflict";
    case 411: return "Length Required";
    case 413: return "Content Too Large";
    case 415: return "Unsupported Media Type";
    case 422: return "Unprocessable Content";
    case 429: return "Too Many Requests";
    case 431: return "Request Header Fields Too Large";
    case 499: return "Client Closed Request";
    case 500: return "Internal Server Error";
    case 501: return "Not Implemented";
    case 502: return "Bad Gateway";
    case 503: return "Service Unavailable";
    case 504: return "Gateway Timeout";
    default: return status < 400 ? "Answer" : "Error";
  }
}

std::string_view DateText::at(std::time_t now) {
  if (now != second_) {
    second_ = now;
    std::tm parts{};
    gmtime_r(&now, &parts);
    std::strftime(text_.data(), text_.size(), "%a, %d %b %Y %H:%M:%S GMT", &parts);
  }
  return text_.data();
}

void append_response_head(std::string& out, const ResponseHead& head, const AnswerFrame& frame) {
  out.append("HTTP/1.1 ");
  append_number(out, static_cast<std::uint64_t>(head.status));
  out.append(" ").append(reason_phrase(head.status)).append(kLineEnd);
  append_field(out, "Date", frame.date);
  append_fields(out, head.headers);
  if (frame.framing == Framing::length) {
    out.append("Content-Length: ");
    append_number(out, frame.length);
    out.append(kLineEnd);
  } else if (frame.framing == Framing::chunked) {
    out.append("Transfer-Encoding: chunked\r\n");
  }
  if (frame.persistence == Persistence::close) {
    out.append("Connection: close\r\n");
  } else if (frame.request_version < 11) {
    out.append("Connection: keep-alive\r\n");
  }
  out.append(kLineEnd);
}

void append_request_head(std::string& out, const Headers& headers, const RequestFrame& frame) {
  append_safe(out, frame.method);
  out.append(" ");
  append_safe(out, frame.target);
  out.append(" HTTP/1.1\r\n");
  if (!headers.find("host")) append_field(out, "Host", frame.host);
  append_fields(out, headers);
  if (frame.length) {
    out.append("Content-Length: ");
    append_number(out, *frame.length);
    out.append(kLineEnd);
  }
  if (frame.persistence == Persistence::close) out.append("Connection: close\r\n");
  out.append(kLineEnd);
}

ChunkHead::ChunkHead(std::size_t bytes) : text_{}, begin_(text_.size() - kLineEnd.size()) {
  text_[begin_] = '\r';
  text_[begin_ + 1] = '\n';
  do {
    text_[--begin_] = "0123456789abcdef"[bytes % 16];
    bytes /= 16;
  } while (bytes > 0);
}

std::string default_error_body(int status, std::string_view message) {
  std::string body = R"({"error":{"message":")";
  for (const char letter : message) {
    if (letter == '"' || letter == '\\') body.push_back('\\');
    body.push_back(static_cast<unsigned char>(letter) < ' ' ? ' ' : letter);
  }
  body.append(R"(","type":")").append(status < 500 ? "invalid_request_error" : "server_error");
  body.append(R"(","param":null,"code":null}})");
  return body;
}

}  // namespace werk::http
