// FILE:MEMBER, one array or file within another, and `-`, wherever a file to read may be named.
#pragma once

#include <filesystem>
#include <string>

#include "vicinal/error.hpp"

namespace vicinal::io {

struct Place {
  std::filesystem::path file;
  std::string member;  ///< empty: the file itself
};

/// `-` is standard input. Another path that is there is a file, whatever its name. Else MEMBER begins behind the first
/// colon before which a file is there; without one the path stays as it is.
VICINAL_API Place place_of(const std::filesystem::path& path);

}  // namespace vicinal::io
