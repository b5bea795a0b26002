// A node's /metrics as a scraper reads it: lines into values by name and labels. Written apart from
// the node's own writer, so that one can't hide a fault of the other. Plain values; owned by a
// test.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace werk::test {

class MetricsPage {
 public:
  explicit MetricsPage(std::string_view text);

  // The sum over every series of that name whose labels hold each of these texts, such as
  // `outcome="served"`. 0 where there is none.
  double sum(std::string_view name, std::initializer_list<std::string_view> labels = {}) const;
  std::size_t series(std::string_view name) const;

 private:
  std::map<std::string, double, std::less<>> values_;  // by name and labels as they stand
};

}  // namespace werk::test
