// Notifier: what a service manager that started us wants to know (systemd's notify protocol): that
// we serve, that we end, and in a line what we are at. Silent where nobody listens. Owned by main;
// any thread, one at a time.
#pragma once

#include <string>
#include <string_view>

namespace werk::process {

class Notifier {
 public:
  // Whoever NOTIFY_SOCKET names, a path or an abstract name ("@..."). The variable is taken out of
  // this process's environment, so that no child speaks in our name; call it before threads run.
  static Notifier take_from_environment();

  // Assignments, one a line: "READY=1\nSTATUS=...". Never blocks; what can't be told is lost.
  void tell(std::string_view assignments) const;

 private:
  explicit Notifier(std::string name) : name_(std::move(name)) {}

  std::string name_;
};

}  // namespace werk::process
