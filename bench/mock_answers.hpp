// The answers of the mock engine as bytes, in llama-server's shape: made once for each shape that
// is asked for, then only sent. Owned by the mock, which lends them to its connections. Single
// thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace werk::bench {

struct MockAnswer {
  std::string bytes;
  // How many of them may go out after the head, each word, and the end.
  std::vector<std::size_t> stops;
};

// What a request asks for.
struct MockShape {
  std::uint64_t tokens = 8;
  bool stream = false;
  bool usage = false;
  bool progress = false;
  auto operator<=>(const MockShape&) const = default;
};

class MockAnswers {
 public:
  explicit MockAnswers(std::string_view alias);
  const MockAnswer& of(const MockShape& shape);

 private:
  std::string chunk(std::string_view delta, std::string_view finish, std::string_view more) const;
  void make_stream(const MockShape& shape, MockAnswer& answer) const;
  void make_whole(const MockShape& shape, MockAnswer& answer) const;

  std::string tail_;
  std::map<MockShape, std::unique_ptr<MockAnswer>> known_;
};

}  // namespace werk::bench
