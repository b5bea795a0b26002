// The calls that only Linux has, kept together (with linux_group) so that another system is one
// more file: starting a process that dies with this one, waiting for it through a process
// descriptor, closing what a child must not inherit, locks that belong to an open file. Main thread
// only where it forks.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "werk/base/result.hpp"
#include "werk/process/descriptor.hpp"

namespace werk::process {

struct Command;
struct ExitStatus;

namespace os {

// The child's standard files (null_reader, *_writer) and our ends of its pipes (never blocking).
struct Files {
  Descriptor null_reader;
  Descriptor out_writer;
  Descriptor err_writer;  // empty: errors go to out_writer too
  Descriptor out_reader;
  Descriptor err_reader;
};

// A process of its own that kills a group when this process has gone: it reads the pipe whose other
// end only we hold.
struct Guardian {
  pid_t pid = -1;
  Descriptor line;
};

struct Launched {
  pid_t pid = -1;
  Descriptor process;  // becomes readable when the process has ended
  Guardian guardian;   // where the command asked for one
};

Result<Files> open_files(const Command& command);

// Forks and runs `path`; closes the child's ends in `files`. The new process leads a group of its
// own, is killed when this process ends, has default signal actions, no blocked signal, only the
// wanted descriptors, and `descriptor_limit` as its soft limit if given. With Guard::group it has a
// guardian, in a session of its own and without any file of ours but its pipe.
Result<Launched> launch(const std::string& path, const Command& command, Files& files,
                        std::optional<std::uint64_t> descriptor_limit);

// The status if it has ended; it stays unreaped.
std::optional<ExitStatus> look(int process);
// Blocks until it has ended; it stays unreaped.
ExitStatus wait_for_end(int process);
void reap(int process);

// Ends a guardian whose group has ended, before its leader is reaped; nothing without one.
void dismiss(Guardian& guardian);

// "SIGTERM"
std::string signal_name(int number);

// Locks that go with the open file and vanish with its last descriptor, whoever is killed.
// True: locked now, or locked already by this very file.
bool lock_file(int file);
// Whether another open file holds the lock; takes nothing.
bool is_locked_by_other(int file);

// The processor cores that this process may use, by its affinity and its control group's quota; two
// threads of one core count once. At least 1.
std::size_t usable_cores();

}  // namespace os
}  // namespace werk::process
