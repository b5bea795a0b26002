#include "werk/process/output.hpp"

namespace werk::process {

void OutputTail::append(std::string_view bytes) {
  total_bytes_ += bytes.size();
  if (bytes.size() >= bytes_max_) {
    kept_.assign(bytes.substr(bytes.size() - bytes_max_));
    return;
  }
  kept_.append(bytes);
  if (kept_.size() > 2 * bytes_max_) kept_.erase(0, kept_.size() - bytes_max_);
}

std::string OutputTail::text() const {
  if (kept_.size() <= bytes_max_) return kept_;
  return kept_.substr(kept_.size() - bytes_max_);
}

void LineSplitter::append(std::string_view bytes,
                          const std::function<void(std::string_view)>& line) {
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    const std::size_t room = kLineBytesMax - open_.size();
    if (end == std::string_view::npos || end > room) {
      const std::string_view piece = bytes.substr(0, room);
      open_.append(piece);
      bytes.remove_prefix(piece.size());
      if (open_.size() == kLineBytesMax) finish(line);
      continue;
    }
    open_.append(bytes.substr(0, end));
    bytes.remove_prefix(end + 1);
    if (open_.ends_with('\r')) open_.pop_back();
    line(open_);
    open_.clear();
  }
}

void LineSplitter::finish(const std::function<void(std::string_view)>& line) {
  if (open_.empty()) return;
  line(open_);
  open_.clear();
}

}  // namespace werk::process
