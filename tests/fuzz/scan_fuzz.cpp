// Any bytes: the scanner says the same however they are cut, keeps its bounds, and agrees with
// Boost.JSON about what is JSON.
#include <boost/json.hpp>

#include <array>
#include <cstdint>
#include <string_view>

#include "werk/base/assert.hpp"
#include "werk/base/json_cursor.hpp"
#include "werk/base/json_scan.hpp"

namespace {

constexpr std::array<std::string_view, 2> kUnique = {"model", "n"};

struct Outcome {
  bool good = false;
  std::string message;
  std::vector<werk::JsonMember> members;
};

Outcome scan(std::string_view text, std::size_t piece, std::span<const std::string_view> unique) {
  werk::JsonScanner scanner({}, unique);
  Outcome outcome;
  for (std::size_t at = 0; at < text.size(); at += piece) {
    const std::string copy(text.substr(at, piece));
    if (const werk::Status status = scanner.feed(copy); !status) {
      outcome.message = status.error().message;
      return outcome;
    }
  }
  const werk::Status status = scanner.finish();
  outcome.good = status.has_value();
  if (!outcome.good) outcome.message = status.error().message;
  outcome.members = scanner.take_members();
  return outcome;
}

bool boost_accepts(std::string_view text) {
  boost::json::parse_options options;
  options.max_depth = 256;
  boost::system::error_code error;
  boost::json::parse({text.data(), text.size()}, error, {}, options);
  return !error;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::size_t piece = 1 + data[0] % 16;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const Outcome whole = scan(text, text.size() + 1, kUnique);
  const Outcome cut = scan(text, piece, kUnique);
  WERK_ASSERT(whole.good == cut.good && whole.message == cut.message);
  if (whole.good) {
    WERK_ASSERT(whole.members.size() == cut.members.size());
    werk::JsonObjectCursor cursor(werk::trim_json(text));
    for (std::size_t i = 0; i < whole.members.size(); ++i) {
      WERK_ASSERT(whole.members[i].value == cut.members[i].value &&
                  whole.members[i].key == cut.members[i].key);
      const auto member = cursor.next();
      WERK_ASSERT(member && member->value == whole.members[i].value.in(text));
      WERK_ASSERT(!whole.members[i].key_kept || member->is(whole.members[i].key));
    }
    if (!text.empty() && werk::trim_json(text).front() == '{') WERK_ASSERT(!cursor.next());
  }
  // Lone surrogates in escapes: Boost refuses them, the scanner lets them through. Otherwise the
  // two agree.
  const bool plain = scan(text, text.size() + 1, {}).good;
  if (boost_accepts(text)) {
    WERK_ASSERT(plain || text.find('[') != text.npos || text.find('{') != text.npos);
  } else if (plain) {
    WERK_ASSERT(text.find("\\u") != text.npos);
  }
  return 0;
}
