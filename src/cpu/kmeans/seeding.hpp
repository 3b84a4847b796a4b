// First centers drawn from the rows' masses (contract clause 12; cpu/kmeans/row_masses.hpp).
#pragma once

#include <cstdint>
#include <memory>

#include "backend/kmeans.hpp"

namespace vicinal::cpu {

/// A table that `lloyd` has read, and which assigns rows to the centers of k-means||.
std::unique_ptr<kernels::Seeding> make_seeding(const Context& ctx, const kernels::ClusterTask& task,
                                               kernels::Lloyd& lloyd, std::int64_t trials);

/// The masses of a shard, for those who draw from all shards; `first` as in `RowMasses`.
std::unique_ptr<kernels::ShardSeeding> make_shard_seeding(const Context& ctx, const kernels::ClusterTask& task,
                                                          kernels::Lloyd& lloyd, std::int64_t trials,
                                                          std::int64_t first);

/// Rows that one task of a thread takes.
inline constexpr std::int64_t kSeedingChunk = 1024;

/// A row whose least key is `key`, to a center c, cannot be changed by a drawn row whose key to c is not below this.
/// For a row x, a key M and a drawn row y, K the key of c and y: |x - y| >= |c - y| - |x - c|, and a key is the square
/// of a distance but for d / 8 + 8 relative errors of 2^-53 and d absolute ones of 2^-1074. With e = (d + 16) 2^-50 and
/// K >= 4 M (1 + e) + 2^-960, the factor 1 + e makes up for the relative errors of the three keys and of this line, and
/// 2^-960 for the absolute ones, so that the key of x and y is not below M. None is below a key of 0.
inline double unchanged_from(double key, std::int64_t d) noexcept {
  return key == 0 ? -1 : key * (4 * (1 + static_cast<double>(d + 16) * 0x1p-50)) + 0x1p-960;
}

/// Keys of so many pairs a row take as long as packing it. The rows are packed when so many have been computed and more
/// than so many are to come: then no more time is lost than what packing takes, whether it would have paid or not.
inline constexpr std::int64_t kPackingKeys = 12;

/// Bytes of the int8 screen, which are no part of `seeding_scratch`; 0 where the processor or the table has none, and
/// where the draws are too few.
std::uint64_t seeding_screen_bytes(const Context& ctx, const kernels::ClusterTask& task, std::int64_t trials);

std::uint64_t seeding_scratch(const Context& ctx, const kernels::ClusterTask& task, std::int64_t trials);

}  // namespace vicinal::cpu
