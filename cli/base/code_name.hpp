// The words for error codes, in JSON and in Python.
#pragma once

#include <string_view>

#include "vicinal/error.hpp"

namespace vicinal::cli {

/// As docs/python.md lists them; "internal" for a code that it does not list.
std::string_view code_name(ErrorCode code);

}  // namespace vicinal::cli
