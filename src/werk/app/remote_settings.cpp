#include "werk/app/remote_settings.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>

#include "werk/app/setting_values.hpp"
#include "werk/base/text.hpp"

namespace werk::app {
namespace {

namespace remote = engine::remote;

constexpr std::size_t kNameBytesMax = 64;
constexpr std::uint64_t kParallelMost = 10'000;
const std::vector<std::string> kKeys = {"url",      "key_env",         "models",
                                        "parallel", "silence_timeout", "kind"};
const std::vector<std::string> kKinds = {"auto", "openai", "werk"};

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= kNameBytesMax && std::ranges::all_of(text, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '_' || c == '.';
  });
}

bool is_variable(std::string_view text) {
  const bool begins_with_digit = !text.empty() && text.front() >= '0' && text.front() <= '9';
  return !text.empty() && !begins_with_digit && std::ranges::all_of(text, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  });
}

tl::unexpected<Error> takes(std::string message) {
  return fail(ErrorCode::invalid_request, "takes " + std::move(message));
}

class Reader {
 public:
  explicit Reader(ConfigFile& file) : file_(file) {}

  std::optional<RemoteEntry> read(const ConfigEntry& entry) {
    const auto* table = std::get_if<ConfigTable>(&entry.value.held);
    if (table == nullptr) {
      fault(entry.line, fmt::format("remotes.{} is {}; a remote is a table [remotes.NAME]",
                                    printable(entry.key), kind_of(entry.value)));
      return std::nullopt;
    }
    if (!is_name(entry.key)) {
      fault(entry.line, fmt::format("\"{}\" can't name a remote; letters, digits, '-', '_' and '.' "
                                    "can",
                                    printable(entry.key)));
      return std::nullopt;
    }
    RemoteEntry remote;
    remote.name = entry.key;
    remote.source = file_.at(entry.line);
    bool sound = true;
    for (const ConfigEntry& one : *table) {
      const Status set = set_member(remote, one);
      if (set) continue;
      sound = false;
      fault(one.line,
            fmt::format("remotes.{}.{} {}", remote.name, printable(one.key), set.error().message));
    }
    const bool has_url =
        std::ranges::any_of(*table, [](const auto& one) { return one.key == "url"; });
    if (!has_url) fault(entry.line, fmt::format("remotes.{} lacks its url", remote.name));
    if (!sound || !has_url) return std::nullopt;
    return remote;
  }

 private:
  void fault(std::uint32_t line, std::string message) {
    file_.faults.push_back({line, std::move(message)});
  }

  static Status set_member(RemoteEntry& remote, const ConfigEntry& one) {
    if (one.key == "models") return set_models(remote, one.value);
    if (one.key == "parallel") return set_parallel(remote, one.value);
    if (one.key == "key" || one.key == "api_key") {
      return fail(ErrorCode::invalid_request,
                  "can't stand here, where others may read it: name the environment variable that "
                  "holds it by key_env");
    }
    if (std::ranges::find(kKeys, one.key) == kKeys.end()) {
      const auto near = near_names(one.key, kKeys, 1);
      return fail(ErrorCode::invalid_request,
                  near.empty()
                      ? fmt::format("is no setting; a remote has {}", fmt::join(kKeys, ", "))
                      : fmt::format("is no setting; did you mean {}?", near.front()));
    }
    const auto* text = std::get_if<std::string>(&one.value.held);
    if (text == nullptr) return takes(fmt::format("a string, not {}", kind_of(one.value)));
    if (one.key == "url") return set_url(remote, *text);
    if (one.key == "kind") return set_kind(remote, *text);
    if (one.key == "silence_timeout") return set_silence(remote, *text);
    if (!is_variable(*text)) return takes("the name of an environment variable");
    remote.key_env = *text;
    return {};
  }

  static Status set_url(RemoteEntry& remote, const std::string& text) {
    Result<remote::RemoteUrl> url = remote::parse_remote_url(text);
    if (!url) return pass_on(url);
    remote.url = std::move(*url);
    return {};
  }

  static Status set_kind(RemoteEntry& remote, const std::string& text) {
    Status known = read_choice(text, kKinds);
    if (known && text == "openai") remote.kind = remote::PeerKind::openai;
    if (known && text == "werk") remote.kind = remote::PeerKind::werk;
    return known;
  }

  static Status set_models(RemoteEntry& remote, const ConfigValue& value) {
    const auto* list = std::get_if<ConfigList>(&value.held);
    if (list == nullptr) return takes(fmt::format("a list of strings, not {}", kind_of(value)));
    for (const ConfigValue& item : *list) {
      const auto* id = std::get_if<std::string>(&item.held);
      if (id == nullptr)
        return takes(fmt::format("a list of strings; an element is {}", kind_of(item)));
      if (id->empty()) return takes("ids of models, not \"\"");
      if (std::ranges::find(remote.models, *id) == remote.models.end())
        remote.models.push_back(*id);
    }
    if (list->empty()) return takes("at least one id; without it the server's own list counts");
    return {};
  }

  static Status set_parallel(RemoteEntry& remote, const ConfigValue& value) {
    const auto* number = std::get_if<std::int64_t>(&value.held);
    if (number == nullptr) return takes(fmt::format("a whole number, not {}", kind_of(value)));
    return read_number<std::size_t>(fmt::to_string(*number), 1, kParallelMost, remote.parallel);
  }

  static Status set_silence(RemoteEntry& remote, const std::string& text) {
    auto duration = parse_duration(text);
    if (!duration) return pass_on(duration);
    if (duration->count() == 0) return takes("a duration above zero");
    remote.silence = *duration;
    return {};
  }

  ConfigFile& file_;
};

}  // namespace

std::vector<RemoteEntry> read_remotes(const ConfigEntry& remotes, ConfigFile& file) {
  std::vector<RemoteEntry> all;
  const auto* table = std::get_if<ConfigTable>(&remotes.value.held);
  if (table == nullptr) {
    file.faults.push_back({remotes.line, fmt::format("remotes takes tables [remotes.NAME], not {}",
                                                     kind_of(remotes.value))});
    return all;
  }
  Reader reader(file);
  for (const ConfigEntry& entry : *table) {
    if (auto remote = reader.read(entry)) all.push_back(std::move(*remote));
  }
  return all;
}

Status add_remote(std::vector<RemoteEntry>& remotes, const std::string& name_and_url) {
  const std::size_t equals = name_and_url.find('=');
  const std::string name = name_and_url.substr(0, equals);
  if (equals == std::string::npos || !is_name(name)) {
    return takes("NAME=URL, where NAME has letters, digits, '-', '_' and '.' alone");
  }
  Result<remote::RemoteUrl> url = remote::parse_remote_url(name_and_url.substr(equals + 1));
  if (!url) return pass_on(url);
  auto known = std::ranges::find(remotes, name, &RemoteEntry::name);
  if (known == remotes.end()) known = remotes.insert(remotes.end(), RemoteEntry{});
  known->name = name;
  known->url = std::move(*url);
  known->source = "--remote";
  return {};
}

std::string show_remotes(const std::vector<RemoteEntry>& remotes) {
  std::string text;
  for (const RemoteEntry& one : remotes)
    text += fmt::format("{}{}={}", text.empty() ? "" : "\n", one.name, one.url.text());
  return text;
}

}  // namespace werk::app
