#include "werk/http/tls.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

#include "werk/base/assert.hpp"

namespace werk::http {

namespace {

// OpenSSL's own socket BIO writes with write(), which raises SIGPIPE where the peer has gone.
int descriptor_of(BIO* bio) {
  return static_cast<int>(reinterpret_cast<std::intptr_t>(BIO_get_data(bio)));
}

int settled(BIO* bio, ssize_t moved, int retry) {
  BIO_clear_retry_flags(bio);
  if (moved < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
    BIO_set_flags(bio, retry | BIO_FLAGS_SHOULD_RETRY);
  if (moved == 0 && retry == BIO_FLAGS_READ) BIO_set_flags(bio, BIO_FLAGS_IN_EOF);
  return static_cast<int>(moved);
}

int read_socket(BIO* bio, char* room, int bytes) {
  const ssize_t moved = ::recv(descriptor_of(bio), room, static_cast<std::size_t>(bytes), 0);
  return settled(bio, moved, BIO_FLAGS_READ);
}

int write_socket(BIO* bio, const char* data, int bytes) {
  const ssize_t moved =
      ::send(descriptor_of(bio), data, static_cast<std::size_t>(bytes), MSG_NOSIGNAL);
  return settled(bio, moved, BIO_FLAGS_WRITE);
}

long control_socket(BIO* bio, int command, long, void*) {
  if (command == BIO_CTRL_FLUSH) return 1;
  if (command == BIO_CTRL_EOF) return BIO_test_flags(bio, BIO_FLAGS_IN_EOF) != 0 ? 1 : 0;
  return 0;
}

const BIO_METHOD* socket_method() {
  static const BIO_METHOD* const kMethod = [] {
    BIO_METHOD* method =
        BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "a socket without SIGPIPE");
    WERK_ASSERT(method != nullptr);
    BIO_meth_set_read(method, &read_socket);
    BIO_meth_set_write(method, &write_socket);
    BIO_meth_set_ctrl(method, &control_socket);
    return method;
  }();
  return kMethod;
}

bool is_address(const std::string& name) {
  std::array<unsigned char, sizeof(in6_addr)> any{};
  return inet_pton(AF_INET, name.c_str(), any.data()) == 1 ||
         inet_pton(AF_INET6, name.c_str(), any.data()) == 1;
}

std::string why_not_trusted(long verdict, const std::string& name) {
  switch (verdict) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return "its certificate has expired; renew it there, or set this machine's clock right";
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return "its certificate isn't valid yet; is this machine's clock right?";
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      return fmt::format(
          "its certificate isn't for '{}'; use a name that the certificate is for, or give the "
          "server one for this name",
          name);
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
      return fmt::format(
          "its certificate is signed by an authority that this machine doesn't know ({}); add the "
          "authority to the system's certificates, or name its file in SSL_CERT_FILE",
          X509_verify_cert_error_string(verdict));
    default:
      return fmt::format("its certificate is refused: {}", X509_verify_cert_error_string(verdict));
  }
}

std::string why_no_tls(unsigned long error) {
  const int reason = ERR_GET_REASON(error);
  if (reason == SSL_R_WRONG_VERSION_NUMBER || reason == SSL_R_HTTP_REQUEST)
    return "it doesn't speak TLS there; is it http:// or another port?";
  if (reason == SSL_R_UNEXPECTED_EOF_WHILE_READING)
    return "it closed the connection without a goodbye";
  if (reason == SSL_R_TLSV1_ALERT_PROTOCOL_VERSION || reason == SSL_R_UNSUPPORTED_PROTOCOL)
    return "it speaks no TLS that is still safe (1.2 or later)";
  const char* text = ERR_reason_error_string(error);
  return fmt::format("TLS failed: {}", text == nullptr ? "without a reason" : text);
}

}  // namespace

void TlsSession::Free::operator()(ssl_st* session) const { SSL_free(session); }
void TlsContext::Free::operator()(ssl_ctx_st* context) const { SSL_CTX_free(context); }

TlsSession::TlsSession(ssl_ctx_st* context, int descriptor, const std::string& name)
    : session_(SSL_new(context)), name_(name) {
  BIO* bio = BIO_new(socket_method());
  WERK_ASSERT(session_ && bio != nullptr);
  BIO_set_data(bio, reinterpret_cast<void*>(static_cast<std::intptr_t>(descriptor)));
  BIO_set_init(bio, 1);
  SSL_set_bio(session_.get(), bio, bio);
  SSL_set_connect_state(session_.get());
  // A server with several names is told which one is meant; an address is none (RFC 6066).
  SSL_set_hostflags(session_.get(), X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  bool set = false;
  if (is_address(name)) {
    set = X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(session_.get()), name.c_str()) == 1;
  } else {
    set = SSL_set1_host(session_.get(), name.c_str()) == 1 &&
          SSL_ctrl(session_.get(), SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
                   const_cast<char*>(name.c_str())) == 1;  // what the macro hides in an old cast
  }
  if (!set) failure_ = fmt::format("'{}' is no name that a certificate can be for", name);
}

TlsStep TlsSession::step_of(int result) {
  const int error = SSL_get_error(session_.get(), result);
  const int system = errno;
  if (error == SSL_ERROR_NONE) return TlsStep::done;
  if (error == SSL_ERROR_WANT_READ) return TlsStep::wants_bytes;
  if (error == SSL_ERROR_WANT_WRITE) return TlsStep::wants_room;
  in_use_ = false;
  if (error == SSL_ERROR_ZERO_RETURN) return TlsStep::ended;
  const long verdict = SSL_get_verify_result(session_.get());
  if (verdict != X509_V_OK) {
    failure_ = why_not_trusted(verdict, name_);
  } else if (const unsigned long queued = ERR_peek_error(); queued != 0) {
    failure_ = why_no_tls(queued);
  } else {
    failure_ = fmt::format("the connection broke: {}", std::generic_category().message(system));
  }
  return TlsStep::failed;
}

TlsStep TlsSession::shake_hands() {
  if (!failure_.empty()) return TlsStep::failed;
  ERR_clear_error();
  const TlsStep step = step_of(SSL_do_handshake(session_.get()));
  in_use_ = step == TlsStep::done;
  return step;
}

TlsSession::Moved TlsSession::read(std::span<char> room) {
  Moved moved;
  while (moved.bytes < room.size()) {
    ERR_clear_error();
    std::size_t bytes = 0;
    const int result =
        SSL_read_ex(session_.get(), room.data() + moved.bytes, room.size() - moved.bytes, &bytes);
    moved.bytes += bytes;
    if (result == 1) continue;
    moved.step = step_of(result);
    break;
  }
  return moved;
}

TlsSession::Moved TlsSession::write(std::string_view bytes) {
  Moved moved;
  while (moved.bytes < bytes.size()) {
    ERR_clear_error();
    std::size_t taken = 0;
    const int result = SSL_write_ex(session_.get(), bytes.data() + moved.bytes,
                                    bytes.size() - moved.bytes, &taken);
    moved.bytes += taken;
    if (result == 1) continue;
    moved.step = step_of(result);
    break;
  }
  return moved;
}

bool TlsSession::holds_bytes() const { return SSL_pending(session_.get()) > 0; }

void TlsSession::say_goodbye() {
  if (!in_use_) return;
  in_use_ = false;
  ERR_clear_error();
  SSL_shutdown(session_.get());
}

Result<TlsContext> TlsContext::open() {
  // The one protocol that this client speaks, as RFC 7301 writes it: a length and the name.
  static constexpr std::array<unsigned char, 9> kHttp = {8, 'h', 't', 't', 'p', '/', '1', '.', '1'};
  TlsContext made;
  made.context_.reset(SSL_CTX_new(TLS_client_method()));
  SSL_CTX* context = made.context_.get();
  const bool ready = context != nullptr &&
                     SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) == 1 &&
                     SSL_CTX_set_default_verify_paths(context) == 1 &&
                     SSL_CTX_set_alpn_protos(context, kHttp.data(), kHttp.size()) == 0;
  if (!ready) return fail(ErrorCode::io, "the system's certificates can't be read");
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  return made;
}

std::unique_ptr<TlsSession> TlsContext::session(int descriptor, const std::string& name) const {
  return std::make_unique<TlsSession>(context_.get(), descriptor, name);
}

}  // namespace werk::http
