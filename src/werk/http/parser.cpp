#include "werk/http/parser.hpp"

#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>
#include <cstring>
#include <optional>

#include "werk/base/text.hpp"

namespace werk::http {

namespace beast = boost::beast;
using beast::http::error;
using BeastError = beast::error_code;

namespace {

std::string_view view(beast::string_view text) {
  return std::string_view(text.data(), text.size());
}

// Where a target's path begins: past scheme and authority of an absolute form.
std::size_t path_begin(std::string_view target) {
  if (target.empty() || target.front() == '/' || target == "*") return 0;
  const std::size_t scheme = target.find("://");
  if (scheme == std::string_view::npos) return 0;
  const std::size_t slash = target.find_first_of("/?", scheme + 3);
  return slash == std::string_view::npos ? target.size() : slash;
}

void set_target(Request& request, std::string_view target) {
  request.target.assign(target);
  const std::string_view rest = target.substr(path_begin(target));
  const std::size_t mark = rest.find('?');
  request.path.assign(rest.substr(0, mark));
  if (request.path.empty()) request.path = "/";
  request.query.clear();
  if (mark != std::string_view::npos) request.query.assign(rest.substr(mark + 1));
}

// Lines that continue a header on the next one: proxies and servers disagree about them.
bool has_folded_line(std::string_view head) {
  std::size_t at = head.find('\n');
  while (at != std::string_view::npos && at + 1 < head.size()) {
    if (head[at + 1] == ' ' || head[at + 1] == '\t') return true;
    at = head.find('\n', at + 1);
  }
  return false;
}

// Receives Beast's callbacks. Body payload is moved together at the front of the bytes being
// parsed: it never overtakes the parser, since framing only takes bytes away.
template <bool kRequest>
class Decoder final : public beast::http::basic_parser<kRequest> {
 public:
  explicit Decoder(std::size_t head_bytes_max) {
    this->header_limit(static_cast<std::uint32_t>(head_bytes_max));
    this->body_limit(boost::none);
    this->eager(false);
  }

  Request* request = nullptr;
  ResponseHead* response = nullptr;
  Headers* headers = nullptr;
  int version = 11;
  bool head_done = false;
  bool in_chunk = false;
  bool has_length = false;
  bool has_coding = false;
  unsigned hosts = 0;
  char* base = nullptr;
  std::ptrdiff_t piece_offset = 0;
  std::size_t piece_bytes = 0;

 private:
  void on_request_impl(beast::http::verb, beast::string_view method, beast::string_view target,
                       int http_version, BeastError&) override {
    version = http_version;
    request->method.assign(method.data(), method.size());
    request->version = http_version;
    set_target(*request, view(target));
  }
  void on_response_impl(int status, beast::string_view, int http_version, BeastError&) override {
    version = http_version;
    response->status = status;
  }
  void on_field_impl(beast::http::field field, beast::string_view name, beast::string_view value,
                     BeastError& failed) override {
    if (head_done) return;  // a trailer: accepted and ignored
    if (field == beast::http::field::content_length) {
      if (has_length || value.find(',') != beast::string_view::npos)
        failed = error::multiple_content_length;
      has_length = true;
    } else if (field == beast::http::field::transfer_encoding) {
      has_coding = true;
      if (!equals_ignoring_case(trim(view(value)), "chunked"))
        failed = error::bad_transfer_encoding;
    } else if (field == beast::http::field::host) {
      ++hosts;
    }
    headers->add(std::string(view(name)), std::string(view(value)));
  }
  void on_header_impl(BeastError& failed) override {
    head_done = true;
    if constexpr (kRequest) {
      if (has_coding && version < 11) failed = error::bad_transfer_encoding;
      if (hosts > 1 || (hosts == 0 && version >= 11)) failed = error::bad_field;
    }
  }
  void on_body_init_impl(const boost::optional<std::uint64_t>&, BeastError&) override {}
  std::size_t on_body_impl(beast::string_view bytes, BeastError&) override { return take(bytes); }
  void on_chunk_header_impl(std::uint64_t size, beast::string_view, BeastError&) override {
    in_chunk = size > 0;
  }
  std::size_t on_chunk_body_impl(std::uint64_t left, beast::string_view bytes,
                                 BeastError&) override {
    if (bytes.size() >= left) in_chunk = false;
    return take(bytes);
  }
  void on_finish_impl(BeastError&) override {}

  std::size_t take(beast::string_view bytes) {
    if (piece_bytes == 0) {
      piece_offset = bytes.data() - base;
    } else {
      std::memmove(base + piece_offset + piece_bytes, bytes.data(), bytes.size());
    }
    piece_bytes += bytes.size();
    return bytes.size();
  }
};

std::string_view describe(const BeastError& failed) {
  if (failed == error::multiple_content_length)
    return "the message has several Content-Length values";
  if (failed == error::bad_content_length) return "the Content-Length is not usable";
  if (failed == error::bad_transfer_encoding) {
    return "the Transfer-Encoding is not usable: only chunked is understood, and not beside a "
           "Content-Length";
  }
  if (failed == error::bad_chunk || failed == error::bad_chunk_extension)
    return "the chunked body is malformed";
  if (failed == error::header_limit) return "the head of the message is too large";
  if (failed == error::bad_field)
    return "a header field is malformed, or Host is missing or given twice";
  if (failed == error::bad_version) return "only HTTP/1.0 and HTTP/1.1 are spoken here";
  if (failed == error::bad_method) return "the method is malformed";
  if (failed == error::bad_target) return "the request target is malformed";
  return "the message is not HTTP";
}

// The part that requests and responses share: feeding Beast and remembering how it failed.
template <bool kRequest>
struct Feeder {
  explicit Feeder(std::size_t max) : head_bytes_max(max) {}

  void restart() {
    decoder.emplace(head_bytes_max);
    head_bytes = 0;
    failure = {};
  }

  Parse fail(int status, std::string_view message) {
    failure.status = status;
    failure.message = message;
    return Parse::failed;
  }

  Parse head(std::string_view bytes, std::size_t& used) {
    BeastError failed;
    used = decoder->put(boost::asio::const_buffer(bytes.data(), bytes.size()), failed);
    head_bytes += used;
    if (has_folded_line(bytes.substr(0, used)))
      return fail(400, "folded header lines are not accepted");
    if (failed && failed != error::need_more) {
      return fail(failed == error::header_limit ? 431 : 400, describe(failed));
    }
    if (head_bytes > head_bytes_max) return fail(431, describe(error::header_limit));
    return decoder->head_done ? Parse::done : Parse::need_more;
  }

  BodyStep body(std::span<char> bytes) {
    BodyStep step;
    if (decoder->is_done()) {
      step.state = Parse::done;
      return step;
    }
    // What follows a chunk is at least 5 bytes long ("0", two line ends); Beast asserts so when it
    // is asked again.
    if (bytes.empty() || (decoder->chunked() && !decoder->in_chunk && bytes.size() < 5))
      return step;
    decoder->eager(true);
    decoder->base = bytes.data();
    decoder->piece_offset = 0;
    decoder->piece_bytes = 0;
    BeastError failed;
    step.used = decoder->put(boost::asio::const_buffer(bytes.data(), bytes.size()), failed);
    step.piece = std::string_view(decoder->base + decoder->piece_offset, decoder->piece_bytes);
    if (failed && failed != error::need_more) {
      step.state = fail(400, describe(failed));
    } else if (decoder->is_done()) {
      step.state = Parse::done;
    }
    return step;
  }

  std::size_t head_bytes_max;
  std::optional<Decoder<kRequest>> decoder;
  std::size_t head_bytes = 0;
  ParseFailure failure;
};

}  // namespace

struct RequestParser::Impl {
  explicit Impl(std::size_t head_bytes_max) : feeder(head_bytes_max) {}
  Feeder<true> feeder;
};

RequestParser::RequestParser(std::size_t head_bytes_max)
    : impl_(std::make_unique<Impl>(head_bytes_max)) {}
RequestParser::~RequestParser() = default;

void RequestParser::restart(Request& request) {
  impl_->feeder.restart();
  impl_->feeder.decoder->request = &request;
  impl_->feeder.decoder->headers = &request.headers;
  request.headers.clear();
  request.content_length.reset();
}

Parse RequestParser::head(std::string_view bytes, std::size_t& used) {
  auto& decoder = *impl_->feeder.decoder;
  const Parse state = impl_->feeder.head(bytes, used);
  if (state == Parse::done) {
    const auto length = decoder.content_length();
    if (length) decoder.request->content_length = *length;
  }
  return state;
}

BodyStep RequestParser::body(std::span<char> bytes) { return impl_->feeder.body(bytes); }
bool RequestParser::body_done() const { return impl_->feeder.decoder->is_done(); }
bool RequestParser::keep_alive() const { return impl_->feeder.decoder->keep_alive(); }
ParseFailure RequestParser::failure() const { return impl_->feeder.failure; }

struct ResponseParser::Impl {
  explicit Impl(std::size_t head_bytes_max) : feeder(head_bytes_max) {}
  void start_head() {
    feeder.restart();
    response->headers.clear();
    feeder.decoder->response = response;
    feeder.decoder->headers = &response->headers;
    feeder.decoder->skip(body == Body::none);
  }
  Feeder<false> feeder;
  ResponseHead* response = nullptr;
  Body body = Body::expected;
};

ResponseParser::ResponseParser(std::size_t head_bytes_max)
    : impl_(std::make_unique<Impl>(head_bytes_max)) {}
ResponseParser::~ResponseParser() = default;

void ResponseParser::restart(ResponseHead& head, Body body) {
  impl_->response = &head;
  impl_->body = body;
  impl_->start_head();
}

Parse ResponseParser::head(std::string_view bytes, std::size_t& used) {
  used = 0;
  for (;;) {
    std::size_t taken = 0;
    const Parse state = impl_->feeder.head(bytes.substr(used), taken);
    used += taken;
    if (state != Parse::done || impl_->response->status / 100 != 1) return state;
    impl_->start_head();
    if (used == bytes.size()) return Parse::need_more;
  }
}

BodyStep ResponseParser::body(std::span<char> bytes) { return impl_->feeder.body(bytes); }

bool ResponseParser::end_of_stream() {
  auto& decoder = *impl_->feeder.decoder;
  if (decoder.is_done()) return true;
  if (!decoder.got_some() || !decoder.head_done) return false;
  BeastError failed;
  decoder.put_eof(failed);
  return !failed;
}

bool ResponseParser::body_done() const { return impl_->feeder.decoder->is_done(); }
bool ResponseParser::keep_alive() const { return impl_->feeder.decoder->keep_alive(); }
std::string_view ResponseParser::failure() const { return impl_->feeder.failure.message; }

}  // namespace werk::http
