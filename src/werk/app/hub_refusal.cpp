#include "werk/app/hub_refusal.hpp"

#include <fmt/format.h>

#include "werk/base/text.hpp"

namespace werk::app {
namespace {

constexpr std::size_t kWordsMax = 200;

std::string own_words(const FetchHead& head) {
  std::string_view words = trim(head.error_message);
  if (words.empty()) return {};
  return fmt::format(" (it says: {})", words.substr(0, kWordsMax));
}

Error gated(const HubAccess& hub, const HubQuestion& question, const FetchHead& head) {
  return Error{
      ErrorCode::forbidden,
      fmt::format("{} is gated{}: accept its terms at {}/{}, then set HF_TOKEN to a token "
                  "of that account",
                  question.repository, own_words(head), hub.endpoint, question.repository)};
}

Error unknown(const HubAccess& hub, const HubQuestion& question, const FetchHead& head) {
  if (head.error_code == "RevisionNotFound") {
    return Error{ErrorCode::invalid_request,
                 fmt::format("{} has no revision '{}'; leave --revision out for its main branch",
                             question.repository, one_line(question.revision))};
  }
  if (!question.file.empty()) {
    return Error{ErrorCode::not_found,
                 fmt::format("{} lists {} and doesn't give it{}; try again later",
                             question.repository, one_line(question.file), own_words(head))};
  }
  return Error{ErrorCode::not_found,
               fmt::format("{} has no repository {}; check its spelling, and if it is private set "
                           "HF_TOKEN",
                           hub.endpoint, question.repository)};
}

Error not_let_in(const HubAccess& hub, const HubQuestion& question, const FetchHead& head) {
  if (!hub.token.empty()) {
    return Error{ErrorCode::unauthorized,
                 fmt::format("{} refuses {} with the token it got{}: the token is wrong or has no "
                             "right to it, or there is no such repository; check HF_TOKEN and the "
                             "spelling",
                             hub.endpoint, question.repository, own_words(head))};
  }
  return Error{ErrorCode::unauthorized,
               fmt::format("{} gives {} to nobody without a token, or there is no such "
                           "repository{}: check the spelling, or set HF_TOKEN",
                           hub.endpoint, question.repository, own_words(head))};
}

}  // namespace

bool may_pass(int status) {
  return status == 408 || status == 429 || (status >= 500 && status != 501 && status != 505);
}

Error hub_refusal(const HubAccess& hub, const HubQuestion& question, const FetchHead& head) {
  if (head.error_code == "GatedRepo") return gated(hub, question, head);
  if (head.error_code == "RevisionNotFound" || head.status == 404) {
    return unknown(hub, question, head);
  }
  if (head.status == 401) return not_let_in(hub, question, head);
  if (head.status == 403) {
    return question.file.empty() ? not_let_in(hub, question, head) : gated(hub, question, head);
  }
  if (head.status == 429) {
    Error error{ErrorCode::io,
                fmt::format("{} answers no more requests for now (429){}", hub.endpoint,
                            head.retry_after
                                ? fmt::format("; it asks to wait {} s", head.retry_after->count())
                                : std::string())};
    if (hub.token.empty()) error.message += "; with a token in HF_TOKEN it allows more";
    error.retry_after = head.retry_after;
    return error;
  }
  return Error{ErrorCode::io, fmt::format("{} answers {}{}; try again later", hub.endpoint,
                                          head.status, own_words(head))};
}

Error hub_unreachable(const HubAccess& hub, const HubQuestion& question, const Fetched& fetched) {
  const std::string what =
      question.file.empty() ? std::string(question.repository) : one_line(question.file);
  std::string advice = "check the network, the proxy variables and HF_ENDPOINT";
  if (fetched.fault == FetchFault::lasting) {
    advice = "for a certificate of your own set SSL_CERT_FILE, and check HF_ENDPOINT";
  }
  return Error{ErrorCode::io, fmt::format("{} could not be fetched from {}: {}; {}", what,
                                          hub.endpoint, fetched.reason, advice)};
}

}  // namespace werk::app
