// The error of a file that is not what it says it is.
#pragma once

#include <string>
#include <string_view>

#include "vicinal/error.hpp"

namespace vicinal::io {

/// Throws `bad_data`: "WHERE WHAT".
[[noreturn]] inline void bad(const std::string& where, std::string_view what) {
  throw Error(ErrorCode::bad_data, where + " " + std::string(what));
}

}  // namespace vicinal::io
