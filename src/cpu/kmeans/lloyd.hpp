// Lloyd's iterations on the CPU: rows in blocks, each block's rows screened, labeled and added to the sums while they
// are in the cache (contract clause 12; the screen's proof: formulas/kmeans/float_bound.hpp; the sums':
// cpu/kmeans/sums.hpp).
#pragma once

#include <cstdint>
#include <memory>

#include "backend/kmeans.hpp"

namespace vicinal::cpu {

/// Of a table that is whole.
std::unique_ptr<kernels::Lloyd> make_lloyd(const Context& ctx, const kernels::ClusterTask& task);
/// Of a shard, which was scanned; `whole`: what the rows of all shards are like.
std::unique_ptr<kernels::ShardLloyd> make_shard(const Context& ctx, const kernels::ClusterTask& task,
                                                const kernels::TableRanges& whole);

/// The most bytes it takes, with sums of kernels::planned_limbs.
std::uint64_t lloyd_scratch(const Context& ctx, const kernels::ClusterTask& task);

/// Bytes of the int8 screen of its labels, which it takes where memory is left (kernels::ScreenBytes); 0
/// where it has none.
std::uint64_t label_screen_bytes(const Context& ctx, const kernels::ClusterTask& task);

}  // namespace vicinal::cpu
