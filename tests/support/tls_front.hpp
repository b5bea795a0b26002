// TlsFront: what speaks TLS in front of a server that doesn't: it accepts on a loopback port and
// carries bytes to and from a Unix socket. It can end as it should, or cut the line without a
// goodbye, and tells which name and protocol clients asked for. A thread for each connection serves
// it; owned by one test.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/test_certificate.hpp"

namespace werk::test {

class TlsFront {
 public:
  enum class Goodbye : std::uint8_t {
    said,
    left_out,  // the line is cut where the server behind it closes
  };
  TlsFront(const TestCertificate& certificate, std::string backend, Goodbye goodbye);
  ~TlsFront();
  TlsFront(const TlsFront&) = delete;
  TlsFront& operator=(const TlsFront&) = delete;

  std::uint16_t port() const { return port_; }
  std::size_t accepted() const { return accepted_; }
  // Of the latest client that came so far; empty if it named none.
  std::string name_asked_for() const;
  std::string protocol_chosen() const;
  // Returns when every connection so far has ended.
  void wait_until_nobody_is_left();

 private:
  void accept_all();
  void serve(int client);
  void note(SSL* session);

  const TestCertificate& certificate_;
  std::string backend_;
  Goodbye goodbye_;
  int listener_ = -1;
  std::uint16_t port_ = 0;
  std::atomic<std::size_t> accepted_{0};
  mutable std::mutex mutex_;
  std::condition_variable left_;
  std::string name_;
  std::string protocol_;
  std::vector<int> clients_;
  std::vector<std::thread> threads_;
  std::thread acceptor_;
};

}  // namespace werk::test
