// fvecs, bvecs and ivecs, the formats of the nearest neighbor benchmarks: each row is int32 d, then d elements of
// float32, uint8 or int32, all little-endian; every row has the same d. Nothing else marks them.
#pragma once

#include <string>

#include "io/bytes.hpp"
#include "vicinal/io.hpp"

namespace vicinal::io {

/// Whether every row of the whole file is one of `format`. O(n): looks at the first four bytes of each row.
bool is_vecs(const Context& ctx, const Bytes& bytes, FileFormat format);

/// Rows and columns. Throws `bad_data` naming the row whose length differs or that is cut.
std::vector<std::int64_t> vecs_shape(const Context& ctx, const Bytes& bytes, const std::string& file,
                                     FileFormat format);

/// The table: fvecs and bvecs where they lie, ivecs widened to float64. Errors as `vecs_shape`, and `over_memory`.
Table read_vecs(const Context& ctx, const Bytes& bytes, const std::string& file, FileFormat format);

}  // namespace vicinal::io
