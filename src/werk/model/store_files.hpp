// What the store does to the disk, one step at a time, each with an error that names the path, the
// operating system's reason and the way out. A hook stands before every step that writes, so that
// tests can make any of them fail or end the process there. Steps are durable: files and folders
// are synced. Blocking; callable from any thread, one object per thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "werk/base/result.hpp"

namespace werk::model {

enum class WriteStep : std::uint8_t {
  create_folder,
  create_file,
  write_bytes,
  sync_file,
  sync_folder,
  publish,  // the rename that makes a model visible
  retire,   // the rename that makes it invisible
  erase     // deleting what is invisible
};

class WriteHook {
 public:
  virtual ~WriteHook() = default;
  // 0 lets the step happen; an errno value makes it fail as if the operating system had said so.
  virtual int before(WriteStep step) = 0;
};

enum class GoOn : std::uint8_t { yes, stop };
// Told how many more bytes are done.
using OnBytes = std::function<GoOn(std::uint64_t bytes)>;

struct CopiedFile {
  std::uint64_t size_bytes = 0;
  std::int64_t modified_ns = 0;  // of the source
  std::string sha256;
};

struct CopyOrder {
  std::filesystem::path source;
  std::filesystem::path target;          // empty: only digest the source
  std::uint64_t bytes_still_needed = 0;  // free space that must be there, this file included
  std::string known_sha256;              // with an empty target: taken instead of reading the file
};

// An exclusive lock on a file, held across processes until the object is destroyed; the system
// frees it when a process dies.
class FileLock {
 public:
  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&&) = delete;
  ~FileLock();

 private:
  friend class StoreFiles;
  explicit FileLock(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;
};

class StoreFiles {
 public:
  // The hook may be null and must outlive the object.
  explicit StoreFiles(WriteHook* hook) : hook_(hook) {}

  // One folder whose parent exists; an error if it exists already.
  Status make_folder(const std::filesystem::path& path);
  // A folder and its missing parents; fine if it exists.
  Status make_folders(const std::filesystem::path& path);
  // A new file with this content.
  Status write_file(const std::filesystem::path& path, std::string_view content);
  // Copies a regular file to a new one (as a clone where the file system can) and digests what
  // arrived. Fails with `cancelled` when `on_bytes` stops it and with `conflict` when the source
  // changes meanwhile.
  Result<CopiedFile> copy(const CopyOrder& order, const OnBytes& on_bytes);
  // Gives a file of the same file system the name `to` as well, or, where a file can't have two
  // names, instead. Nothing is copied.
  Status adopt(const std::filesystem::path& from, const std::filesystem::path& to);
  Status sync_folder(const std::filesystem::path& path);
  // `conflict` when something stands at `to`.
  Status move(const std::filesystem::path& from, const std::filesystem::path& to, WriteStep step);
  // A folder and all below it; links inside are removed, what they point to is not. Fine if it does
  // not exist.
  Status erase(const std::filesystem::path& path);

  // Waits for the lock; creates the file when it is missing.
  Result<FileLock> lock(const std::filesystem::path& path);
  // None when somebody holds it or the file does not exist.
  static std::optional<FileLock> try_lock(const std::filesystem::path& path);

 private:
  int before(WriteStep step) { return hook_ ? hook_->before(step) : 0; }
  Status write_all(int descriptor, std::string_view bytes, const std::filesystem::path& path);
  Status sync_file(int descriptor, const std::filesystem::path& path);
  Result<std::string> copy_bytes(int source, int target, std::uint64_t size_bytes,
                                 const CopyOrder& order, const OnBytes& on_bytes);

  WriteHook* hook_;
};

// `io`: "Cannot <what> PATH: <the system's reason>."
Error read_error(std::string_view what, const std::filesystem::path& path, int reason);
// The same with the way out of a full disk or a folder that may not be written.
Error write_error(std::string_view what, const std::filesystem::path& path, int reason);

}  // namespace werk::model
