// TlsContext and TlsSession: the client's side of TLS on a socket that somebody else owns and waits
// for. A context holds the system's authorities and is made once by each client; a session belongs
// to one Stream. Nothing here waits: every call does what the socket allows now and says what it
// wants next. Verified are the chain and the name, from TLS 1.2 on. Inside http only, loop thread
// only.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "werk/base/result.hpp"

struct ssl_st;
struct ssl_ctx_st;

namespace werk::http {

enum class TlsStep : std::uint8_t {
  done,
  wants_bytes,  // go on when the socket has something to read
  wants_room,   // go on when the socket takes bytes
  ended,        // the peer has said goodbye: no more will come
  failed,       // see failure()
};

class TlsSession {
 public:
  // `name` is what the certificate must be for: a host name, or an address as it is written.
  TlsSession(ssl_ctx_st* context, int descriptor, const std::string& name);

  // Until it is done; nothing is read or written before.
  TlsStep shake_hands();

  struct Moved {
    std::size_t bytes = 0;
    TlsStep step = TlsStep::done;  // done: there may be more to move at once
  };
  // As much as there is and has room. What came before the end or a fault is given with it.
  Moved read(std::span<char> room);
  // As much as the socket takes. What it didn't take must be offered again, unchanged, as the next
  // thing that is written.
  Moved write(std::string_view bytes);
  // Decrypted bytes wait, of which the socket knows nothing any more.
  bool holds_bytes() const;
  // Tells the peer that no more will come, if the socket takes it; before the socket is closed.
  void say_goodbye();

  // Why it failed and what to do about it, to stand behind "cannot connect to HOST: ".
  const std::string& failure() const { return failure_; }

 private:
  TlsStep step_of(int result);

  struct Free {
    void operator()(ssl_st* session) const;
  };
  std::unique_ptr<ssl_st, Free> session_;
  std::string name_;
  std::string failure_;
  bool in_use_ = false;  // the handshake is done and nothing has failed
};

class TlsContext {
 public:
  // Trusts what the system trusts; SSL_CERT_FILE and SSL_CERT_DIR name other places, as for every
  // program that uses OpenSSL. Fails with io.
  static Result<TlsContext> open();

  std::unique_ptr<TlsSession> session(int descriptor, const std::string& name) const;

 private:
  struct Free {
    void operator()(ssl_ctx_st* context) const;
  };
  std::unique_ptr<ssl_ctx_st, Free> context_;
};

}  // namespace werk::http
