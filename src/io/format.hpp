// What a file's name says of its format: asked for output, and for input only where content cannot tell.
#pragma once

#include <filesystem>

#include "vicinal/io.hpp"

namespace vicinal::io {

/// By the last suffix: .gz, .bz2, .xz or none.
Compression compression_of_suffix(const std::filesystem::path& path);

}  // namespace vicinal::io
