#include "werk/app/hub.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>

#include "werk/base/text.hpp"

namespace werk::app {
namespace {

namespace json = boost::json;

constexpr std::string_view kPrefix = "hf:";
constexpr std::string_view kPublicEndpoint = "https://huggingface.co";
constexpr std::size_t kNameBytesMax = 96;
constexpr std::size_t kRevisionBytesMax = 255;
constexpr std::size_t kTokenBytesMax = 4096;
constexpr std::size_t kPathBytesMax = 1024;
constexpr std::size_t kFilesMax = 200'000;
constexpr std::uint64_t kFileBytesMax = std::uint64_t{1} << 44;  // so that sums can't overflow
constexpr std::size_t kCommitDigits = 40;
constexpr std::size_t kDigestDigits = 64;

bool is_letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool is_hex(std::string_view text, std::size_t digits) {
  const auto hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  return text.size() == digits && std::ranges::all_of(text, hex);
}

bool is_name_part(std::string_view part) {
  const auto allowed = [](char c) {
    return is_letter_or_digit(c) || c == '-' || c == '_' || c == '.';
  };
  return !part.empty() && part.size() <= kNameBytesMax && part.front() != '.' &&
         std::ranges::all_of(part, allowed);
}

std::string encoded(std::string_view text, std::string_view kept) {
  std::string out;
  for (const char c : text) {
    const bool stays =
        is_letter_or_digit(c) || std::string_view("-_.~").contains(c) || kept.contains(c);
    if (stays) {
      out.push_back(c);
    } else {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

bool has_control(std::string_view text) {
  return std::ranges::any_of(
      text, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; });
}

// A path that the repository may really hold; it also becomes part of a local file's name.
bool is_plain_path(std::string_view path) {
  if (path.empty() || path.size() > kPathBytesMax || has_control(path) || !is_valid_utf8(path)) {
    return false;
  }
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view part = path.substr(begin, end - begin);
    if (part.empty() || part == "." || part == "..") return false;
    begin = end + 1;
  }
  return true;
}

tl::unexpected<Error> no_answer_of_a_hub(std::string_view what) {
  return fail(ErrorCode::io, fmt::format("the hub's answer is not what a hub sends ({}); look at "
                                         "HF_ENDPOINT",
                                         what));
}

const json::value* member(const json::object& object, std::string_view name) {
  return object.if_contains(name);
}

std::string text_member(const json::object& object, std::string_view name) {
  const json::value* value = member(object, name);
  return value && value->is_string() ? std::string(value->get_string()) : std::string();
}

std::optional<std::uint64_t> size_member(const json::object& object) {
  const json::value* value = member(object, "size");
  if (!value || !value->is_int64() || value->get_int64() < 0) return std::nullopt;
  return static_cast<std::uint64_t>(value->get_int64());
}

Result<std::string> token_of(const HubVariable& variable, const HubFileReader& read_file) {
  const auto set = [&](std::string_view name) {
    return std::string(trim(variable(name).value_or("")));
  };
  std::string token = set("HF_TOKEN");
  std::string from = "HF_TOKEN";
  if (token.empty()) {
    from = set("HF_TOKEN_PATH");
    if (from.empty() && !set("HF_HOME").empty()) from = set("HF_HOME") + "/token";
    if (from.empty() && !set("XDG_CACHE_HOME").empty()) {
      from = set("XDG_CACHE_HOME") + "/huggingface/token";
    }
    if (from.empty() && !set("HOME").empty()) from = set("HOME") + "/.cache/huggingface/token";
    if (!from.empty()) token = std::string(trim(read_file(from).value_or("")));
  }
  const auto printable_ascii = [](char c) { return c > ' ' && c < 0x7F; };
  if (token.size() > kTokenBytesMax || !std::ranges::all_of(token, printable_ascii)) {
    return fail(ErrorCode::invalid_request,
                fmt::format("the hub's token in {} is no token: it holds blanks or control "
                            "characters, or is too long",
                            from));
  }
  return token;
}

}  // namespace

std::string one_line(std::string_view text) {
  std::string line = printable(text);
  std::ranges::replace_if(
      line, [](char c) { return c == '\n' || c == '\t'; }, ' ');
  return line;
}

bool is_hub_name(std::string_view subject) { return subject.starts_with(kPrefix); }

Result<HubName> parse_hub_name(std::string_view subject) {
  HubName name;
  std::string_view rest = subject.substr(is_hub_name(subject) ? kPrefix.size() : 0);
  const std::size_t colon = rest.find(':');
  if (colon != std::string_view::npos) {
    name.quantization = std::string(rest.substr(colon + 1));
    rest = rest.substr(0, colon);
  }
  const std::size_t slash = rest.find('/');
  const bool right = slash != std::string_view::npos && is_name_part(rest.substr(0, slash)) &&
                     is_name_part(rest.substr(slash + 1)) &&
                     (colon == std::string_view::npos || is_name_part(name.quantization));
  if (!right) {
    return fail(ErrorCode::invalid_request,
                fmt::format("'{}' names no repository of the hub; the form is hf:ORG/REPO or "
                            "hf:ORG/REPO:Q4_K_M (one file: --file NAME)",
                            one_line(subject)));
  }
  name.repository = std::string(rest);
  return name;
}

Status check_revision(std::string_view revision) {
  if (!is_plain_path(revision) || revision.size() > kRevisionBytesMax) {
    return fail(ErrorCode::invalid_request,
                fmt::format("'{}' is no revision; give a branch, a tag or a commit",
                            one_line(revision.substr(0, kRevisionBytesMax))));
  }
  return {};
}

Result<HubAccess> hub_access(const HubVariable& variable, const HubFileReader& read_file) {
  HubAccess hub;
  hub.endpoint = std::string(trim(variable("HF_ENDPOINT").value_or("")));
  if (hub.endpoint.empty()) hub.endpoint = kPublicEndpoint;
  while (hub.endpoint.ends_with('/')) hub.endpoint.pop_back();
  const std::string lower = to_lower(hub.endpoint);
  const bool is_address = lower.starts_with("https://") || lower.starts_with("http://");
  // A name and password in it would stand in messages and manifests.
  if (!is_address || has_control(hub.endpoint) ||
      hub.endpoint.find_first_of(" ?#@") != std::string::npos) {
    const std::size_t at = hub.endpoint.find('@');
    return fail(ErrorCode::invalid_request,
                fmt::format("HF_ENDPOINT is {}, which is no plain address such as {}",
                            at == std::string::npos ? "'" + one_line(hub.endpoint) + "'"
                                                    : "an address with an '@'",
                            kPublicEndpoint));
  }
  auto token = token_of(variable, read_file);
  if (!token) return pass_on(token);
  hub.token = std::move(*token);
  hub.ca_file = variable("CURL_CA_BUNDLE").value_or("");
  if (hub.ca_file.empty()) hub.ca_file = variable("SSL_CERT_FILE").value_or("");
  hub.ca_folder = variable("SSL_CERT_DIR").value_or("");
  return hub;
}

std::string revision_url(const HubAccess& hub, std::string_view repository,
                         std::string_view revision) {
  return fmt::format("{}/api/models/{}/revision/{}", hub.endpoint, repository,
                     encoded(revision, ""));
}

std::string tree_url(const HubAccess& hub, std::string_view repository, std::string_view commit) {
  return fmt::format("{}/api/models/{}/tree/{}?recursive=true", hub.endpoint, repository,
                     encoded(commit, ""));
}

std::string file_url(const HubAccess& hub, std::string_view repository, std::string_view commit,
                     std::string_view path) {
  return fmt::format("{}/{}/resolve/{}/{}", hub.endpoint, repository, encoded(commit, ""),
                     encoded(path, "/"));
}

std::string owner_url(const HubAccess& hub, std::string_view owner) {
  return fmt::format("{}/api/models?author={}&filter=gguf&limit=500", hub.endpoint,
                     encoded(owner, ""));
}

std::string search_url(const HubAccess& hub, std::string_view text) {
  return fmt::format("{}/api/models?search={}&filter=gguf&limit=50", hub.endpoint,
                     encoded(text, ""));
}

std::vector<std::string> parse_repositories(std::string_view text) {
  std::vector<std::string> names;
  boost::system::error_code error;
  const json::value whole = json::parse(text, error);
  if (error || !whole.is_array()) return names;
  for (const json::value& entry : whole.get_array()) {
    if (!entry.is_object()) continue;
    const auto name = parse_hub_name(text_member(entry.get_object(), "id"));
    if (name && name->quantization.empty()) names.push_back(name->repository);
  }
  return names;
}

Result<HubRevision> parse_revision(std::string_view text) {
  boost::system::error_code error;
  const json::value whole = json::parse(text, error);
  if (error || !whole.is_object()) return no_answer_of_a_hub("no JSON object");
  HubRevision revision;
  revision.commit = text_member(whole.get_object(), "sha");
  if (!is_hex(revision.commit, kCommitDigits)) return no_answer_of_a_hub("no commit");
  const json::value* card = member(whole.get_object(), "cardData");
  if (card && card->is_object()) revision.licence = text_member(card->get_object(), "license");
  return revision;
}

Status parse_tree(std::string_view text, std::vector<HubFile>& files) {
  boost::system::error_code error;
  const json::value whole = json::parse(text, error);
  if (error || !whole.is_array()) return no_answer_of_a_hub("no JSON array");
  for (const json::value& entry : whole.get_array()) {
    if (!entry.is_object()) return no_answer_of_a_hub("an entry that is no object");
    const json::object& facts = entry.get_object();
    if (text_member(facts, "type") != "file") continue;
    HubFile file;
    file.path = text_member(facts, "path");
    // What could not be fetched anyway must not hinder the rest.
    if (!is_plain_path(file.path)) continue;
    std::optional<std::uint64_t> size_bytes = size_member(facts);
    const json::value* large = member(facts, "lfs");
    if (large && large->is_object()) {
      const json::object& lfs = large->get_object();
      if (size_member(lfs)) size_bytes = size_member(lfs);
      file.sha256 = to_lower(text_member(lfs, "oid"));
      if (file.sha256.starts_with("sha256:")) file.sha256.erase(0, 7);
      if (!is_hex(file.sha256, kDigestDigits)) return no_answer_of_a_hub("no SHA-256 of a file");
    }
    if (!size_bytes || *size_bytes > kFileBytesMax) {
      return no_answer_of_a_hub("a file without a size that can be");
    }
    file.size_bytes = *size_bytes;
    files.push_back(std::move(file));
    if (files.size() > kFilesMax) return no_answer_of_a_hub("too many files");
  }
  return {};
}

std::string next_page(const HubAccess& hub, std::string_view link_header) {
  // <https://HOST/api/models/...?cursor=...>; rel="next", <...>; rel="..."
  while (!link_header.empty()) {
    const std::size_t open = link_header.find('<');
    const std::size_t close = link_header.find('>', open);
    if (open == std::string_view::npos || close == std::string_view::npos) return {};
    const std::string_view address = link_header.substr(open + 1, close - open - 1);
    link_header.remove_prefix(close + 1);
    const std::size_t end = std::min(link_header.find('<'), link_header.size());
    const std::string_view parameters = link_header.substr(0, end);
    if (!parameters.contains("rel=\"next\"") && !parameters.contains("rel=next")) continue;
    // A mirror may repeat the address of what it mirrors.
    const std::size_t path = address.find("/api/models/");
    if (path == std::string_view::npos || has_control(address)) return {};
    return hub.endpoint + std::string(address.substr(path));
  }
  return {};
}

}  // namespace werk::app
