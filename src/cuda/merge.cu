// See merge.hpp. The screen numbers a tile's rows, and the queries that are rows of the table, from the tile's first
// row on; where it would not have k rows to choose from, or finds a key that overflows and would name it by those
// numbers, every key of the tile is computed. A squared distance is the key itself: no root is taken before the end.
#include "cuda/merge.hpp"

namespace vicinal::cuda {
namespace {

/// Ids counted from the tile's first row become those of the table; each list is `k` long.
__global__ void number_kernel(std::int64_t* ids, unsigned long long* counts, std::int64_t queries, std::int64_t k,
                              std::int64_t first_row) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= queries * k) return;
  ids[i] += first_row;
  if (i % k == 0) counts[i / k] = static_cast<unsigned long long>(k);
}

__global__ void shift_kernel(const std::int64_t* from, std::int64_t count, std::int64_t first_row, std::int64_t* to) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) to[i] = from[i] >= first_row ? from[i] - first_row : -1;
}

/// The fewest rows of a tile that a query may choose from.
std::int64_t least_eligible(const Search& tile, const std::uint64_t* filter) {
  std::int64_t rows = tile.table.n;
  if (filter != nullptr) {
    rows = 0;
    for (std::int64_t id = tile.first_row; id < tile.first_row + tile.table.n; ++id) {
      rows += static_cast<std::int64_t>(filter[id >> 6] >> (id & 63) & 1);
    }
  }
  return rows - (tile.self ? 1 : 0) - (tile.exclude != nullptr ? 1 : 0);
}

}  // namespace

void merge_tile(const Engine& engine, const Search& tile, DirectTask task, const std::uint64_t* filter,
                const TileLists& own, Counters& counters) {
  task.search = &tile;
  const std::int64_t m = tile.queries.n;
  const bool whole_words = tile.filter == nullptr || tile.first_row % 64 == 0;
  if (!whole_words || least_eligible(tile, filter) < own.k ||
      !fused_serves(engine, tile.metric, tile.table.n, tile.table.d, own.k)) {
    return direct_pass(engine, task);
  }
  Search local = tile;
  local.first_row = 0;
  local.first_query -= tile.first_row;
  // The distance of the squared metric is the key itself.
  if (tile.metric == Metric::euclidean) local.metric = Metric::sqeuclidean;
  if (tile.filter != nullptr) local.filter += tile.first_row / 64;
  if (tile.exclude != nullptr) {
    shift_kernel<<<blocks_for(m, 256), 256, 0, engine.stream>>>(tile.exclude, m, tile.first_row, own.exclude.data());
    check_launch("number rows");
    local.exclude = own.exclude.data();
  }
  try {
    fused_k_lists(engine, local, {own.k, own.ids.data(), own.keys.data()}, counters);
  } catch (const Failure& failure) {
    if (failure.code != ErrorCode::bad_data) throw;
    return direct_pass(engine, task);
  }
  number_kernel<<<blocks_for(m * own.k, 256), 256, 0, engine.stream>>>(own.ids.data(), own.counts.data(), m, own.k,
                                                                       tile.first_row);
  check_launch("number rows");
  take_candidates(engine, task.lists, {own.keys.data(), own.ids.data(), own.counts.data(), own.k, own.holes.data()}, m);
  engine.synchronize();
}

}  // namespace vicinal::cuda
