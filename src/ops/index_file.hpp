// The file of a saved index: one safetensors file, so that other programs can read the table and its groups too.
#pragma once

#include <filesystem>

#include "io/bytes.hpp"
#include "kernels.hpp"

namespace vicinal::ops {

/// Writes an index, whole or not at all. A block source is streamed: O(block) memory.
void write_index(const Context& ctx, const std::filesystem::path& path, const kernels::Prepared& index);

/// Maps a file that `write_index` wrote; the table borrows from the mapping (`storage`). Throws `bad_data` naming the
/// file for any other. O(file) time, O(n + d) memory.
kernels::Prepared read_index(const Context& ctx, const std::filesystem::path& path);
/// The same of a file's bytes; `path` is for sentences.
kernels::Prepared read_index(const Context& ctx, const io::Bytes& bytes, const std::filesystem::path& path);

}  // namespace vicinal::ops
