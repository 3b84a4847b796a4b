// See merge.hpp. A squared distance is the key itself: no root is taken before the end.
#include "cuda/nearest/merge.hpp"

namespace vicinal::cuda {
namespace {

__global__ void full_lists(unsigned long long* counts, std::int64_t queries, std::int64_t k) {
  const std::int64_t i = own_number();
  if (i < queries) counts[i] = static_cast<unsigned long long>(k);
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
  if (least_eligible(tile, filter) < own.k || !fused_serves(engine, tile.metric, tile.table.n, tile.table.d, own.k)) {
    return direct_pass(engine, task);
  }
  Search keys_wanted = tile;
  if (tile.metric == Metric::euclidean) keys_wanted.metric = Metric::sqeuclidean;
  fused_k_lists(engine, keys_wanted, {own.k, own.ids.data(), own.keys.data()}, counters);
  full_lists<<<blocks_for(m, 256), 256, 0, engine.stream>>>(own.counts.data(), m, own.k);
  check_launch("count neighbors");
  take_candidates(engine, task.lists, {own.keys.data(), own.ids.data(), own.counts.data(), own.k, own.holes.data()}, m);
  engine.synchronize();
}

}  // namespace vicinal::cuda
