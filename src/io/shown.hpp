// Bytes from a file inside a sentence: short, printable, valid UTF-8, whatever the file holds (contract clause 10).
#pragma once

#include <string>
#include <string_view>

#include "vicinal/error.hpp"

namespace vicinal::io {

/// At most 40 bytes; control characters and what is not UTF-8 become '?'.
std::string shown(std::string_view text);

/// All of it; bytes of control characters (line ends, too) and of what is not UTF-8 become "\x1b".
VICINAL_API std::string printable(std::string_view text);

}  // namespace vicinal::io
