// Asking a Python interpreter for the version of a package it has: what engines that live in an
// interpreter are found by. The interpreter runs isolated, for twenty seconds at most; a stop ends
// it. Loop thread only.
#pragma once

#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "werk/async/clock.hpp"
#include "werk/base/result.hpp"
#include "werk/process/child.hpp"

namespace werk::engine::owned {

// Python that prints the version of the package which its argument names.
inline constexpr std::string_view kVersionQuestion =
    "import importlib.metadata as m, sys; print(m.version(sys.argv[1]))";

struct PackageQuestion {
  std::string python;
  std::string package;
  std::vector<std::string> environment;
};

// What it printed. Fails with `not_found` ("lacks PACKAGE", "did not run (...)"), `cancelled`, and
// as the start of a process does.
async::awaitable<Result<std::string>> package_version(process::Children& children,
                                                      async::Clock& clock, PackageQuestion question,
                                                      std::stop_token stop);

}  // namespace werk::engine::owned
