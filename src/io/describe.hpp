// What columns a file has, without its rows.
#pragma once

#include <filesystem>

#include "vicinal/io.hpp"

namespace vicinal::io {

/// describe_file, but for the rows: text has -1, and a format whose columns have no names has no arrays.
VICINAL_API FileInfo describe_columns(const Context& ctx, const std::filesystem::path& path,
                                      const ReadOptions& options);

}  // namespace vicinal::io
