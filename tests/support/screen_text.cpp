#include "tests/support/screen_text.hpp"

#include <algorithm>
#include <array>
#include <vector>

namespace werk::test {
namespace {

constexpr std::size_t kLines = 60;
constexpr std::size_t kColumns = 200;

class Screen {
 public:
  void write(std::string_view bytes) {
    while (!bytes.empty()) {
      const std::size_t taken = bytes[0] == '\x1b' ? escape(bytes) : character(bytes[0]);
      bytes.remove_prefix(std::min(taken, bytes.size()));
    }
  }
  std::string text() const {
    std::string all;
    for (const std::string& line : lines_) {
      const std::size_t end = line.find_last_not_of(' ');
      all += line.substr(0, end == std::string::npos ? 0 : end + 1) + "\n";
    }
    return all;
  }

 private:
  std::size_t character(char c) {
    if (c == '\r') column_ = 0;
    if (c == '\n') line_ = std::min(line_ + 1, kLines - 1);
    if (c == '\b') column_ -= std::min<std::size_t>(column_, 1);
    if (c == '\t') column_ = std::min((column_ / 8 + 1) * 8, kColumns - 1);
    if (static_cast<unsigned char>(c) < 0x20) return 1;
    lines_[line_][column_] = c;
    column_ = std::min(column_ + 1, kColumns - 1);
    return 1;
  }
  // How many bytes the sequence has; what is cut off at the end has no effect yet.
  std::size_t escape(std::string_view bytes) {
    if (bytes.size() < 2) return bytes.size();
    if (bytes[1] == '(' || bytes[1] == ')') return 3;
    if (bytes[1] != '[') return 2;
    std::size_t end = 2;
    while (end < bytes.size() && (bytes[end] < '@' || bytes[end] > '~')) ++end;
    if (end < bytes.size()) control(bytes.substr(2, end - 2), bytes[end]);
    return end + 1;
  }
  void control(std::string_view parameters, char what) {
    std::array<std::size_t, 2> numbers{};
    std::size_t at = 0;
    for (const char c : parameters) {
      if (c == ';') at = std::min<std::size_t>(at + 1, 1);
      if (c >= '0' && c <= '9') numbers[at] = numbers[at] * 10 + static_cast<std::size_t>(c - '0');
    }
    const std::size_t first = std::max<std::size_t>(numbers[0], 1);
    const std::size_t second = std::max<std::size_t>(numbers[1], 1);
    switch (what) {
      case 'A': line_ -= std::min(line_, first); break;
      case 'B': line_ = std::min(line_ + first, kLines - 1); break;
      case 'C': column_ = std::min(column_ + first, kColumns - 1); break;
      case 'D': column_ -= std::min(column_, first); break;
      case 'H':
        line_ = std::min(first, kLines) - 1;
        column_ = std::min(second, kColumns) - 1;
        break;
      case 'J': erase_below(); break;
      case 'K': erase_in_line(numbers[0]); break;
      default: break;
    }
  }
  void erase_in_line(std::size_t how) {
    const std::size_t begin = how == 0 ? column_ : 0;
    const std::size_t end = how == 1 ? column_ + 1 : kColumns;
    std::fill(lines_[line_].begin() + static_cast<std::ptrdiff_t>(begin),
              lines_[line_].begin() + static_cast<std::ptrdiff_t>(end), ' ');
  }
  void erase_below() {
    erase_in_line(0);
    for (std::size_t i = line_ + 1; i < kLines; ++i) lines_[i].assign(kColumns, ' ');
  }

  std::vector<std::string> lines_ = std::vector<std::string>(kLines, std::string(kColumns, ' '));
  std::size_t line_ = 0;
  std::size_t column_ = 0;
};

}  // namespace

std::string screen_text(std::string_view written) {
  Screen screen;
  screen.write(written);
  return screen.text();
}

}  // namespace werk::test
