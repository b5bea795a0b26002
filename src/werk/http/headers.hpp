// Headers: the fields of a message's head, in the order they came, names compared without regard to
// case. A plain value owned by its message. It checks nothing: what arrives was checked by the
// parser, and what is sent is made safe when it is written (see heads.hpp).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace werk::http {

struct Header {
  std::string name;
  std::string value;
};

class Headers {
 public:
  void add(std::string name, std::string value);
  // Replaces every field of that name by this one.
  void set(std::string name, std::string value);
  void remove(std::string_view name);
  void clear() { fields_.clear(); }

  // The first field of that name.
  std::optional<std::string_view> find(std::string_view name) const;
  std::size_t count(std::string_view name) const;

  bool empty() const { return fields_.empty(); }
  std::size_t size() const { return fields_.size(); }
  auto begin() const { return fields_.begin(); }
  auto end() const { return fields_.end(); }

 private:
  std::vector<Header> fields_;
};

}  // namespace werk::http
