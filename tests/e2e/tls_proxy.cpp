#include "tests/e2e/tls_proxy.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <stdexcept>

#include "tests/support/loopback_listener.hpp"

namespace werk::test {
namespace {

// The descriptor at which nginx finds the socket, told by the variable that it uses to hand its
// sockets on to a new nginx.
constexpr int kSocket = 3;

}  // namespace

std::string TlsProxy::program() {
  for (const char* place : {"/usr/sbin/nginx", "/usr/local/sbin/nginx", "/usr/bin/nginx"}) {
    if (::access(place, X_OK) == 0) return place;
  }
  return {};
}

TlsProxy::TlsProxy(const CertificateFacts& facts, std::uint16_t upstream, Buffering buffering)
    : certificate_(folder_.path(), facts) {
  const int listener = listen_on_loopback(port_);
  write_settings(upstream, buffering);
  const std::string nginx = program();
  const std::string settings = folder_ / "nginx.conf";
  const std::string errors = folder_ / "errors.log";
  const std::string folder = folder_.path().string() + "/";
  const std::string sockets = fmt::format("NGINX={};", kSocket);
  const char* const arguments[] = {nginx.c_str(),  "-p", folder.c_str(),   "-e",
                                   errors.c_str(), "-c", settings.c_str(), nullptr};
  const char* const environment[] = {sockets.c_str(), nullptr};
  pid_ = ::fork();
  if (pid_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);  // which it passes on to its worker
    // Where both numbers are the same, dup2 would leave the close-on-exec mark.
    const int copy = ::dup(listener);
    ::dup2(copy, kSocket);
    ::execve(nginx.c_str(), const_cast<char* const*>(arguments),
             const_cast<char* const*>(environment));
    ::_exit(127);
  }
  ::close(listener);
  if (pid_ < 0) throw std::runtime_error("nginx could not be started");
}

TlsProxy::~TlsProxy() {
  ::kill(pid_, SIGTERM);
  ::waitpid(pid_, nullptr, 0);
}

std::string TlsProxy::errors() const {
  std::ostringstream text;
  text << std::ifstream(folder_ / "errors.log").rdbuf();
  return text.str();
}

void TlsProxy::write_settings(std::uint16_t upstream, Buffering buffering) const {
  const std::string folder = folder_.path().string();
  std::ofstream(folder_ / "nginx.conf") << fmt::format(
      R"(daemon off; worker_processes 1; pid {0}/nginx.pid; {6}
events {{}}
http {{
  access_log off;
  client_body_temp_path {0}/body; proxy_temp_path {0}/proxy; fastcgi_temp_path {0}/fastcgi;
  uwsgi_temp_path {0}/uwsgi; scgi_temp_path {0}/scgi;
  server {{
    listen 127.0.0.1:{1} ssl;
    ssl_certificate {2};
    ssl_certificate_key {3};
    client_max_body_size 0;
    location / {{
      proxy_pass http://127.0.0.1:{4};
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header Host 127.0.0.1;
      proxy_buffering {5};
      proxy_read_timeout 1h;
    }}
  }}
}}
)",
      folder, port_, certificate_.file().string(), certificate_.key_file().string(), upstream,
      buffering == Buffering::on ? "on" : "off",
      // Its workers would change to a user who may not enter the test's folder.
      ::geteuid() == 0 ? "user root;" : "");
}

}  // namespace werk::test
