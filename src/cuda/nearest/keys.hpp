// Keys of pairs of rows on the device (contract clause 1): packing of rows, and the kernel that forms the keys of a
// block of queries and a block of rows and hands on those within a limit.
#pragma once

#include <cstdint>

#include "cuda/base/device.hpp"
#include "cuda/nearest/task.hpp"

namespace vicinal::cuda {

/// Rows as the keys want them: float64, column by column, the columns of one accumulator after each other; of length
/// one for cosine.
struct PackedRows {
  double* values = nullptr;      ///< [d, stride], 0 beyond the last row
  std::uint8_t* zero = nullptr;  ///< [stride] for cosine: rows of zeros
  std::int64_t count = 0;
  std::int64_t stride = 0;
};

/// Rows [begin, begin + count), packed into memory that `to` names; `to.count` is set.
void pack_rows(const Engine& engine, Metric metric, const Rows& rows, std::int64_t begin, std::int64_t count,
               PackedRows& to);

/// What becomes of a key that is within its query's limit and whose pair may be neighbors: it is counted, and kept
/// where there is room. The order in which a query's keys are kept is not defined.
struct KeySink {
  const double* limits = nullptr;         ///< [queries] keys above are dropped
  unsigned long long* counts = nullptr;   ///< [queries] added to
  double* keys = nullptr;                 ///< null: they are only counted
  std::int64_t* ids = nullptr;            ///< beside the keys
  const std::int64_t* offsets = nullptr;  ///< [queries + 1] where each query's room begins; null: at q * room
  std::int64_t room = 0;
  const std::int64_t* slots = nullptr;          ///< [queries] whose count and room a query uses; null: its own
  const std::uint32_t* query_labels = nullptr;  ///< [queries] pairs of one label are dropped; null: no such pairs are
  const std::uint32_t* row_labels = nullptr;    ///< [rows of the search's table]
  unsigned long long* overflow = nullptr;       ///< the smallest `overflow_code` of a pair whose key is not finite
};

inline constexpr unsigned long long kNoOverflow = ~0ULL;
inline constexpr int kOverflowRowBits = 40;
/// Queries of one call, and rows of a table, that the code can tell apart.
inline constexpr std::int64_t kMaxQueries = std::int64_t{1} << 23;
inline constexpr std::int64_t kMaxRows = std::int64_t{1} << kOverflowRowBits;

/// The search that a block of keys belongs to: whole tables, of which the block is a part.
struct KeyBlock {
  const Search* search = nullptr;
  std::int64_t first_query = 0;  ///< of the block, within search.queries
  std::int64_t first_row = 0;    ///< of the block, within search.table
};

/// What the strides of packed queries and rows must be multiples of where there is room for so many queries.
std::int64_t query_tile(std::int64_t queries);
std::int64_t row_tile(std::int64_t queries);

void form_keys(const Engine& engine, const KeyBlock& block, const PackedRows& queries, const PackedRows& rows,
               const KeySink& sink);

}  // namespace vicinal::cuda
