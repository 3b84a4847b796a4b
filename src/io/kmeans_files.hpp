// The tables of the classical parallel k-means tools: text, lines `id x1 .. xD` parted by blanks, whose ids count up
// and are no part of the table; and binary, int32 N, int32 D, then N * D float32, little-endian.
#pragma once

#include <string>

#include "io/bytes.hpp"
#include "vicinal/io.hpp"

namespace vicinal::io {

/// Whether a file is as long as the rows and columns that it begins with say.
bool is_kmeans_binary(const Bytes& bytes) noexcept;

/// Whether a text's first column counts from 0 or 1 to its last line, and there are at least two lines and two columns,
/// parted by blanks. O(bytes), but for text that is none only its first lines.
bool is_kmeans_text(const Context& ctx, const Bytes& bytes);

/// Rows and columns. Throws `bad_data` where the length of the file is another.
std::vector<std::int64_t> kmeans_binary_shape(const Bytes& bytes, const std::string& file);

/// Borrows the numbers where they lie.
Table read_kmeans_binary(const Bytes& bytes, const std::string& file);

/// Read as CSV is, without the ids. Throws `bad_data` where the ids do not count up.
Table read_kmeans_text(const Context& ctx, const Bytes& bytes, const std::string& file);

}  // namespace vicinal::io
