// What is told of a redirect, which Werk's clients never follow: a key is for the host it was
// meant for. Only the host it leads to is named, since the rest of such an address may hold
// secrets. Pure.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "werk/base/text.hpp"

namespace werk::http {

inline bool is_redirect(int status) { return status >= 300 && status < 400; }

// Goes behind whoever answered so: "redirects to other.example (status 308), which is not
// followed".
inline std::string redirect_text(int status, std::string_view location) {
  constexpr std::size_t kHostBytesMax = 255;
  std::string_view host;
  const std::size_t slashes = location.find("//");
  const std::string_view scheme = location.substr(0, slashes);
  const bool names_host = slashes == 0 || (slashes != std::string_view::npos &&
                                           scheme.find_first_of(":/?#") + 1 == scheme.size());
  if (names_host) {
    host = location.substr(slashes + 2);
    host = host.substr(0, host.find_first_of("/?#\\"));
    const std::size_t at = host.rfind('@');
    if (at != std::string_view::npos) host.remove_prefix(at + 1);
    host = host.substr(0, std::min(host.size(), kHostBytesMax));
  }
  return fmt::format("redirects to {} (status {}), which is not followed",
                     host.empty() ? "another path of its own" : printable(host), status);
}

}  // namespace werk::http
