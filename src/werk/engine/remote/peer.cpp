#include "werk/engine/remote/peer.hpp"

#include <fmt/format.h>

#include "werk/base/text.hpp"
#include "werk/engine/masker.hpp"
#include "werk/http/redirect.hpp"

namespace werk::engine::remote {
namespace {

using namespace std::chrono_literals;

constexpr auto kProbeLimit = 5s;
constexpr std::size_t kReadBytesMax = 4096;
constexpr std::size_t kReasonBytesMax = 300;

http::Address address_of(const RemoteUrl& url) {
  http::Address address;
  address.host = url.host;
  address.port = url.port;
  if (url.transport == Transport::tls) address.tls_name = url.host;
  return address;
}

}  // namespace

Peer::Peer(async::Executor executor, async::Clock& clock, RemoteSettings settings)
    : clock_(clock),
      settings_(std::move(settings)),
      text_("remote " + settings_.name),
      client_(std::move(executor), clock, {}) {}

HttpTarget Peer::target() const {
  HttpTarget target;
  target.host = settings_.url.host;
  target.port = settings_.url.port;
  if (settings_.url.transport == Transport::tls) target.tls_name = settings_.url.host;
  target.ownership = Ownership::external;
  target.silence = settings_.silence;
  if (!settings_.key.empty()) target.authorization = "Bearer " + settings_.key;
  return target;
}

async::awaitable<Result<std::vector<PeerModel>>> Peer::models(std::stop_token stop) {
  const Result<std::string> page = co_await get(settings_.url.prefix + "/models", stop);
  if (!page) co_return fail(page.error());
  Result<std::vector<PeerModel>> models = read_models_page(*page);
  if (!models) models.error().message = fmt::format("{}: {}", text_, models.error().message);
  co_return models;
}

async::awaitable<Result<std::optional<NativeSlots>>> Peer::slots_of(std::string model,
                                                                    std::stop_token stop) {
  const std::string path = settings_.url.beside("/werk/v1/observability");
  const Result<std::string> page = co_await get(path, stop);
  if (!page) co_return fail(page.error());
  co_return read_observability(*page, model);
}

async::awaitable<Result<std::string>> Peer::get(std::string path, std::stop_token stop) {
  http::ClientRequest request;
  request.method = "GET";
  request.target = std::move(path);
  request.headers.add("Accept", "application/json");
  if (!settings_.key.empty()) request.headers.add("Authorization", "Bearer " + settings_.key);
  const async::Deadline limit(clock_, kProbeLimit, stop);
  http::Address address = address_of(settings_.url);
  auto answer =
      co_await client_.fetch(std::move(address), std::move(request), kPageBytesMax, limit.token());
  if (!answer && limit.expired()) {
    co_return fail(ErrorCode::engine_timeout, Origin::engine,
                   fmt::format("{} ({}) did not answer in time", text_, settings_.url.place()));
  }
  if (!answer) {
    Error error = std::move(answer.error());
    if (error.code != ErrorCode::cancelled)
      error.message = fmt::format("{}: {}", text_, error.message);
    co_return fail(std::move(error));
  }
  if (answer->status != 200) co_return fail(explain(*answer));
  co_return std::move(answer->body);
}

Error Peer::explain(const http::Whole& answer) const {
  Error error{ErrorCode::engine_failed, {}, Origin::engine};
  if (http::is_redirect(answer.status)) {
    const std::string leads =
        http::redirect_text(answer.status, answer.headers.find("Location").value_or(""));
    error.message = fmt::format("{} {}; set the url where it serves", text_, leads);
    return error;
  }
  if (answer.status == 401 || answer.status == 403) {
    error.message =
        settings_.key_env.empty()
            ? fmt::format(
                  "{} wants a key (status {}): name the environment variable that holds "
                  "it by key_env",
                  text_, answer.status)
            : fmt::format("{} refuses the key in {} (status {})", text_, settings_.key_env,
                          answer.status);
    return error;
  }
  if (answer.status == 404 || answer.status == 405 || answer.status == 501)
    error.code = ErrorCode::not_found;
  // Masked before it is cut, so that no piece of a key stays.
  std::string said = masked(answer.body.substr(0, kReadBytesMax));
  said = printable(trim(std::string_view(said).substr(0, std::min(said.size(), kReasonBytesMax))));
  error.message = fmt::format("{} answers with status {}{}{}", text_, answer.status,
                              said.empty() ? "" : ": ", said);
  return error;
}

std::string Peer::masked(std::string text) const {
  if (settings_.key.empty()) return text;
  Masker masker;
  masker.hide(settings_.key, "<key>");
  return masker.apply(text);
}

}  // namespace werk::engine::remote
