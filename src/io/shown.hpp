// Bytes from a file inside a sentence: short, printable, valid UTF-8, whatever the file holds (contract clause 10).
#pragma once

#include <string>
#include <string_view>

namespace vicinal::io {

/// At most 40 bytes; control characters and what is not UTF-8 become '?'.
std::string shown(std::string_view text);

}  // namespace vicinal::io
