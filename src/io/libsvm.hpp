// libsvm's sparse text: lines `label index:value ..`, indices ascending, what is not named 0; '#' opens a comment.
#pragma once

#include <string>

#include "io/bytes.hpp"
#include "vicinal/io.hpp"

namespace vicinal::io {

/// Text per chunk, parsed by one thread. Tests make it tiny.
inline constexpr std::int64_t kLibsvmChunk = std::int64_t{1} << 20;

/// Whether the first lines of a text are libsvm's, one of them with an index.
bool is_libsvm(const Context& ctx, const Bytes& bytes);

struct LibsvmShape {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t stored = 0;  ///< index:value pairs
};
/// Reads the whole text. Errors as `read_libsvm`, but for memory.
LibsvmShape libsvm_shape(const Context& ctx, const Bytes& bytes, const std::string& file,
                         std::int64_t chunk = kLibsvmChunk);

/// The dense float64 table and its labels (none where all are 0); `columns` 0: as many as the largest index says.
/// Indices count from 1, or from 0 where an index 0 occurs. Throws `bad_data` naming the line of the first fault,
/// `over_memory` before more than the limit is taken. O(bytes + n d), in parallel.
Table read_libsvm(const Context& ctx, const Bytes& bytes, const std::string& file, std::int64_t columns = 0,
                  std::int64_t chunk = kLibsvmChunk);

}  // namespace vicinal::io
