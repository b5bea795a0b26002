// TlsProxy: nginx with TLS in front of a server on a loopback port, as people put it before one. It
// gets a listening socket that the test has opened, so that no port is guessed. Owned by one test;
// destroying it ends nginx. Blocking.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "tests/support/temporary_folder.hpp"
#include "tests/support/test_certificate.hpp"

namespace werk::test {

class TlsProxy {
 public:
  enum class Buffering : std::uint8_t { off, on };
  TlsProxy(const CertificateFacts& facts, std::uint16_t upstream, Buffering buffering);
  ~TlsProxy();
  TlsProxy(const TlsProxy&) = delete;
  TlsProxy& operator=(const TlsProxy&) = delete;

  // Empty: there is no nginx on this machine.
  static std::string program();

  std::uint16_t port() const { return port_; }
  // What a client must trust.
  std::string certificate() const { return certificate_.file(); }
  // nginx's own words, for failures.
  std::string errors() const;

 private:
  void write_settings(std::uint16_t upstream, Buffering buffering) const;

  TemporaryFolder folder_;
  TestCertificate certificate_;
  std::uint16_t port_ = 0;
  pid_t pid_ = -1;
};

}  // namespace werk::test
