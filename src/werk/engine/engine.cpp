#include "werk/engine/engine.hpp"

#include "werk/base/digest.hpp"

namespace werk::engine {

std::string RuntimeKey::text() const {
  return engine + "/" + manifest_identity.substr(0, 12) + "/" + options_digest.substr(0, 8);
}

std::string RuntimeKey::alias() const {
  return "werk-" +
         sha256_hex(engine + "\n" + manifest_identity + "\n" + options_digest).substr(0, 20);
}

}  // namespace werk::engine
