#include "werk/gateway/abilities.hpp"

#include <fmt/format.h>

namespace werk::gateway {
namespace {

tl::unexpected<Error> unsupported(std::string message, std::string param) {
  Error error{ErrorCode::unsupported, std::move(message), Origin::client};
  error.param = std::move(param);
  return fail(std::move(error));
}

}  // namespace

Status check_abilities(const Needs& needs, const engine::RuntimeFacts& facts,
                       const std::string& model) {
  if (needs.tools && !facts.supports_tools) {
    return unsupported(
        fmt::format(
            "the chat template of {} has no place for tools, so the model would never see them",
            model),
        "tools");
  }
  if (needs.images && !facts.supports_images) {
    return unsupported(
        fmt::format("{} can't see images: no projector file (mmproj) lies beside it", model),
        "messages");
  }
  if (needs.remote_media) {
    return unsupported(
        "media must be sent inside the request as a data: URL; this node fetches none", "messages");
  }
  return {};
}

}  // namespace werk::gateway
