#include "tests/support/tls_front.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <memory>

#include "tests/support/loopback_listener.hpp"

namespace werk::test {
namespace {

int connect_to_backend(const std::string& path) {
  const int backend = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  if (::connect(backend, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0)
    return backend;
  ::close(backend);
  return -1;
}

bool send_all(int socket, const char* bytes, std::size_t size) {
  while (size > 0) {
    const ssize_t sent = ::send(socket, bytes, size, MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes += sent;
    size -= static_cast<std::size_t>(sent);
  }
  return true;
}

int choose_http(SSL*, const unsigned char** chosen, unsigned char* length,
                const unsigned char* offered, unsigned int offered_length, void*) {
  static constexpr std::array<unsigned char, 9> kHttp = {8, 'h', 't', 't', 'p', '/', '1', '.', '1'};
  unsigned char* found = nullptr;
  const int made =
      SSL_select_next_proto(&found, length, kHttp.data(), kHttp.size(), offered, offered_length);
  *chosen = found;
  return made == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

// Carries what each side says to the other until one of them ends. True: the backend ended.
bool carry(SSL* client, int socket, int backend) {
  std::array<char, 16384> room{};
  while (true) {
    std::array<pollfd, 2> watched{{{socket, POLLIN, 0}, {backend, POLLIN, 0}}};
    if (SSL_pending(client) == 0) ::poll(watched.data(), watched.size(), -1);
    if (SSL_pending(client) > 0 || watched[0].revents != 0) {
      const int read = SSL_read(client, room.data(), room.size());
      if (read <= 0) return false;
      if (!send_all(backend, room.data(), static_cast<std::size_t>(read))) return true;
    }
    if (watched[1].revents != 0) {
      const ssize_t read = ::recv(backend, room.data(), room.size(), 0);
      if (read <= 0) return true;
      if (SSL_write(client, room.data(), static_cast<int>(read)) <= 0) return false;
    }
  }
}

}  // namespace

TlsFront::TlsFront(const TestCertificate& certificate, std::string backend, Goodbye goodbye)
    : certificate_(certificate), backend_(std::move(backend)), goodbye_(goodbye) {
  std::signal(SIGPIPE, SIG_IGN);  // OpenSSL writes without a care
  SSL_CTX_set_alpn_select_cb(certificate_.context(), &choose_http, nullptr);
  listener_ = listen_on_loopback(port_);
  acceptor_ = std::thread([this] { accept_all(); });
}

TlsFront::~TlsFront() {
  ::shutdown(listener_, SHUT_RDWR);
  acceptor_.join();
  ::close(listener_);
  {
    const std::lock_guard lock(mutex_);
    for (const int client : clients_) ::shutdown(client, SHUT_RDWR);
  }
  for (std::thread& thread : threads_) thread.join();
}

void TlsFront::accept_all() {
  while (true) {
    const int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0) return;
    ++accepted_;
    const std::lock_guard lock(mutex_);
    clients_.push_back(client);
    threads_.emplace_back([this, client] { serve(client); });
  }
}

void TlsFront::serve(int client) {
  const std::unique_ptr<SSL, decltype(&SSL_free)> session(SSL_new(certificate_.context()),
                                                          &SSL_free);
  SSL_set_fd(session.get(), client);
  if (SSL_accept(session.get()) == 1) {
    note(session.get());
    const int backend = connect_to_backend(backend_);
    const bool backend_ended = backend >= 0 && carry(session.get(), client, backend);
    if (backend_ended && goodbye_ == Goodbye::said) SSL_shutdown(session.get());
    if (backend >= 0) ::close(backend);
  }
  const std::lock_guard lock(mutex_);
  std::erase(clients_, client);
  ::close(client);
  left_.notify_all();
}

void TlsFront::wait_until_nobody_is_left() {
  std::unique_lock lock(mutex_);
  left_.wait(lock, [this] { return clients_.empty(); });
}

void TlsFront::note(SSL* session) {
  const char* name = SSL_get_servername(session, TLSEXT_NAMETYPE_host_name);
  const unsigned char* protocol = nullptr;
  unsigned int length = 0;
  SSL_get0_alpn_selected(session, &protocol, &length);
  const std::lock_guard lock(mutex_);
  name_ = name == nullptr ? "" : name;
  protocol_ = std::string(reinterpret_cast<const char*>(protocol), length);
}

std::string TlsFront::name_asked_for() const {
  const std::lock_guard lock(mutex_);
  return name_;
}

std::string TlsFront::protocol_chosen() const {
  const std::lock_guard lock(mutex_);
  return protocol_;
}

}  // namespace werk::test
