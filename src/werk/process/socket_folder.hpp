// SocketFolder: the private folder of a node's sockets, removed when its owner goes. It holds a
// lock file for as long as the node lives, by which the next node tells the folders of dead nodes
// and removes them. Any thread, one at a time; made once at start (it reads the folders it may lie
// in).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "werk/base/result.hpp"
#include "werk/process/descriptor.hpp"
#include "werk/process/program.hpp"

namespace werk::process {

class SocketFolder {
 public:
  // The longest path a UNIX socket's address holds.
  static constexpr std::size_t kSocketPathBytesMax = 107;

  // Makes `werk-XXXXXX` (mode 0700) in $XDG_RUNTIME_DIR, else $TMPDIR, else /tmp: in the first that
  // is writable and short enough for every name that next_socket makes. Stale folders in all three
  // are removed. io if none can be used.
  static Result<SocketFolder> create(const Environment& environment);

  SocketFolder(SocketFolder&& other) noexcept = default;
  SocketFolder& operator=(SocketFolder&&) = delete;
  ~SocketFolder();

  const std::string& path() const { return path_; }
  // An absolute path that was never given out before: the stem (cut, and reduced to letters, digits
  // and '-'), a number, ".sock". Nothing exists there.
  std::string next_socket(std::string_view stem);

 private:
  SocketFolder(std::string path, Descriptor lock);

  std::string path_;
  Descriptor lock_;
  std::uint64_t next_number_ = 1;
};

}  // namespace werk::process
