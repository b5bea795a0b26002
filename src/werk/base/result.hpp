// Result<T>: a value or an Error. Expected failures are values; Werk's own code does not throw.
#pragma once

#include <string>
#include <tl/expected.hpp>
#include <utility>

#include "werk/base/error.hpp"

namespace werk {

template <class T>
using Result = tl::expected<T, Error>;

using Status = Result<void>;

// A failure, ready to be returned as any Result<T>.
inline tl::unexpected<Error> fail(Error error) {
  return tl::unexpected<Error>(std::move(error));
}

inline tl::unexpected<Error> fail(ErrorCode code, std::string message) {
  return tl::unexpected<Error>(Error{code, std::move(message)});
}

inline tl::unexpected<Error> fail(ErrorCode code, Origin origin, std::string message) {
  return tl::unexpected<Error>(Error{code, std::move(message), origin});
}

// Passes the failure of one Result on as another's: `if (!x) return pass_on(x);`
template <class T>
tl::unexpected<Error> pass_on(Result<T>& failed) {
  return tl::unexpected<Error>(std::move(failed.error()));
}

}  // namespace werk
