// Rows of other components among all rows (other_rows.hpp), by every metric: keys in float64 by blocks of rows that are
// searched and blocks of the table (nearest/keys.cu). Of a key nothing is written unless its pair is of two components
// and not above what is still of use to the row's; what is written is looked at after each block, so that after the
// first ones next to nothing is.
#include <algorithm>
#include <cmath>
#include <type_traits>

#include "cuda/base/memory.hpp"
#include "cuda/base/warp.cuh"
#include "cuda/density/growth.cuh"
#include "cuda/density/other_rows.hpp"
#include "cuda/nearest/direct.hpp"
#include "cuda/nearest/keys.hpp"

namespace vicinal::cuda::density {
namespace {

constexpr std::int64_t kBlockQueries = 2048;
constexpr std::int64_t kBlockRows = 8192;
constexpr std::int64_t kLeastQueries = 64;
constexpr std::int64_t kLeastRows = 256;
constexpr double kBlockWork = 2e10;  // columns of pairs of a block: some milliseconds, so that a cancel is noticed
constexpr double kPowerWork = 150;   // of a column that is raised to a power
constexpr int kTakers = 8;           // warps of a block, a query each

std::int64_t whole_tiles(std::int64_t count, std::int64_t tile) {
  return (count + tile - 1) / tile * tile;
}

/// Rows that are searched at a time, rows of the table, and what they take.
struct BlockSizes {
  std::int64_t queries;
  std::int64_t rows;

  BlockSizes(const Rows& table, Metric metric, std::uint64_t scratch)
      : queries(std::min(table.n, kBlockQueries)), rows(std::min(table.n, kBlockRows)) {
    const double work = static_cast<double>(table.d + 8) * (metric == Metric::minkowski ? kPowerWork : 1);
    const auto is_too_long = [&] { return static_cast<double>(queries * rows) * work > kBlockWork; };
    while ((bytes(table) > scratch || is_too_long()) && (queries > kLeastQueries || rows > kLeastRows)) {
      if (rows > kLeastRows && (rows >= 2 * queries || queries <= kLeastQueries)) {
        rows = std::max(kLeastRows, rows / 2);
      } else {
        queries = std::max(kLeastQueries, queries / 2);
      }
    }
  }
  [[nodiscard]] std::uint64_t bytes(const Rows& table) const {
    const auto d = static_cast<std::uint64_t>(table.d);
    const auto padded =
        static_cast<std::uint64_t>(whole_tiles(queries, query_tile(queries)) + whole_tiles(rows, row_tile(queries)));
    const auto own = static_cast<std::uint64_t>(queries);
    return padded * (d * sizeof(double) + 1) + own * d * static_cast<std::uint64_t>(size_of(table.dtype)) +
           own * (44 + 16 * static_cast<std::uint64_t>(rows)) + 4096;
  }
};

/// Words of rows that are searched, after each other; `words` a row.
template <class Word>
__global__ void gather_kernel(const Word* table, const std::uint32_t* rows, std::int64_t count, std::int64_t words,
                              Word* to) {
  const std::int64_t i = own_number();
  if (i < count * words) to[i] = table[rows[i / words] * words + i % words];
}

/// Rows that are being searched, [count] each.
struct Pursuits {
  Growth growth;
  const std::uint32_t* places;
  std::uint32_t* rows;
  std::int64_t count;
  std::uint32_t* labels;
  double* limits;  // of pairs' keys
  double* keys;    // of what was found
  std::uint32_t* found;
};

__global__ void begin_kernel(const __grid_constant__ Pursuits all) {
  const std::int64_t i = own_number();
  if (i >= all.count) return;
  const std::uint32_t row = all.growth.order != nullptr ? all.growth.order[all.places[i]] : all.places[i];
  all.rows[i] = row;
  const std::uint32_t found = all.growth.other[row];
  all.labels[i] = all.growth.label[row];
  all.found[i] = found;
  all.keys[i] = found != kNoRow ? all.growth.other_key[row] : INFINITY;
}

__global__ void limit_kernel(const __grid_constant__ Pursuits all) {
  const std::int64_t i = own_number();
  if (i < all.count) all.limits[i] = all.growth.pair_limit(all.growth.core(all.rows[i]), all.labels[i]);
}

__global__ void finish_kernel(const __grid_constant__ Pursuits all) {
  const std::int64_t i = own_number();
  if (i < all.count) all.growth.finish(all.rows[i], all.keys[i], all.found[i]);
}

__device__ __forceinline__ bool is_before(double key_a, std::uint32_t id_a, double key_b, std::uint32_t id_b) {
  return key_a < key_b || (key_a == key_b && id_a < id_b);
}

/// The first of what a block of keys left of a query, a warp a query; clears the count.
__global__ void __launch_bounds__(32 * kTakers)
    take_kernel(const __grid_constant__ Pursuits all, const double* pair_keys, const std::int64_t* ids,
                unsigned long long* counts, std::int64_t room) {
  const std::int64_t i = own_number() / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if (i >= all.count) return;
  const auto count = static_cast<std::int64_t>(counts[i]);
  if (count == 0) return;
  const Growth& growth = all.growth;
  const double core = growth.core(all.rows[i]);
  const double limit = growth.limit(all.labels[i]);
  double key = INFINITY;
  std::uint32_t id = kNoRow;
  for (std::int64_t j = lane; j < count; j += 32) {
    const auto other = static_cast<std::uint32_t>(ids[i * room + j]);
    const double other_key = growth.key(core, growth.core(other), pair_keys[i * room + j]);
    if (!(other_key <= limit) || !is_before(other_key, other, key, id)) continue;
    key = other_key;
    id = other;
  }
  __syncwarp();
  for (int step = 16; step > 0; step /= 2) {
    const double other_key = __shfl_xor_sync(kWholeWarp, key, step);
    const std::uint32_t other_id = __shfl_xor_sync(kWholeWarp, id, step);
    if (!is_before(other_key, other_id, key, id)) continue;
    key = other_key;
    id = other_id;
  }
  if (lane != 0) return;
  counts[i] = 0;
  if (!is_before(key, id, all.keys[i], all.found[i])) return;
  all.keys[i] = key;
  all.found[i] = id;
  lower(growth.best + all.labels[i], place_of(key));
}

/// Rows packed for keys, in memory of their own.
struct PackedBlock {
  Buffer<double> values;
  Buffer<std::uint8_t> zero;
  PackedRows rows;

  PackedBlock(const Engine& engine, Metric metric, std::int64_t stride, std::int64_t d)
      : values(engine, stride * d), zero(engine, metric == Metric::cosine ? stride : 0) {
    rows.stride = stride;
    rows.values = values.data();
    rows.zero = zero.data();
  }
};

class OfAll final : public OtherRows {
 public:
  OfAll(const Engine& engine, const Search& search, const Growth& growth, std::uint64_t scratch)
      : engine_(engine),
        growth_(growth),
        sizes_(search.table, search.metric, scratch),
        row_bytes_(search.table.d * size_of(search.table.dtype)),
        gathered_(engine, sizes_.queries * row_bytes_),
        queries_(engine, search.metric, whole_tiles(sizes_.queries, query_tile(sizes_.queries)), search.table.d),
        rows_(engine, search.metric, whole_tiles(sizes_.rows, row_tile(sizes_.queries)), search.table.d),
        searched_(engine, sizes_.queries),
        labels_(engine, sizes_.queries),
        found_(engine, sizes_.queries),
        limits_(engine, sizes_.queries),
        keys_(engine, sizes_.queries),
        counts_(engine, sizes_.queries),
        pair_keys_(engine, sizes_.queries * sizes_.rows),
        ids_(engine, sizes_.queries * sizes_.rows),
        overflow_(engine, 1) {
    const std::uint64_t needed = sizes_.bytes(search.table);
    if (needed > scratch) refuse_memory(needed, scratch);
    check(cudaMemsetAsync(overflow_.data(), 0xff, overflow_.bytes(), engine.stream), "clear device memory");
    search_.table = search.table;
    search_.metric = search.metric;
    search_.p = search.p;
    search_.queries = search.table;
    search_.queries.data = gathered_.data();
  }

  void relabel() override {}

  void search(std::int64_t first, std::int64_t count) override {
    Pace pace(engine_);
    counts_.zero();
    touched_ = count * search_.table.n;
    for (const std::int64_t end = first + count; first < end; first += sizes_.queries) {
      search_block(growth_.numbers + first, std::min(sizes_.queries, end - first), pace);
    }
  }
  std::int64_t touched() override { return touched_; }

 private:
  void search_block(const std::uint32_t* places, std::int64_t count, Pace& pace) {
    const Pursuits all = {growth_,        places,         searched_.data(), count,
                          labels_.data(), limits_.data(), keys_.data(),     found_.data()};
    const unsigned blocks = blocks_for(count, kThreads);
    begin_kernel<<<blocks, kThreads, 0, engine_.stream>>>(all);
    check_launch("begin a search for other components");
    gather(searched_.data(), count);
    search_.queries.n = count;
    pack_rows(engine_, search_.metric, search_.queries, 0, count, queries_.rows);
    KeySink sink;
    sink.limits = limits_.data();
    sink.counts = counts_.data();
    sink.keys = pair_keys_.data();
    sink.ids = ids_.data();
    sink.room = sizes_.rows;
    sink.overflow = overflow_.data();  // the lists have met every pair
    sink.query_labels = labels_.data();
    sink.row_labels = growth_.label;
    for (std::int64_t first = 0; first < search_.table.n; first += sizes_.rows) {
      limit_kernel<<<blocks, kThreads, 0, engine_.stream>>>(all);
      check_launch("bound edges");
      pack_rows(engine_, search_.metric, search_.table, first, std::min(sizes_.rows, search_.table.n - first),
                rows_.rows);
      form_keys(engine_, {&search_, 0, first}, queries_.rows, rows_.rows, sink);
      take_kernel<<<blocks_for(count, kTakers), 32 * kTakers, 0, engine_.stream>>>(all, pair_keys_.data(), ids_.data(),
                                                                                   counts_.data(), sizes_.rows);
      check_launch("take edges");
      pace.step();
    }
    finish_kernel<<<blocks, kThreads, 0, engine_.stream>>>(all);
    check_launch("end a search for other components");
  }

  void gather(const std::uint32_t* rows, std::int64_t count) {
    const auto copy = [&](auto* to) {
      using Word = std::remove_pointer_t<decltype(to)>;
      const std::int64_t words = row_bytes_ / static_cast<std::int64_t>(sizeof(Word));
      gather_kernel<<<blocks_for(count * words, kThreads), kThreads, 0, engine_.stream>>>(
          static_cast<const Word*>(search_.table.data), rows, count, words, to);
    };
    switch (size_of(search_.table.dtype)) {
      case 1:
        copy(reinterpret_cast<std::uint8_t*>(gathered_.data()));
        break;
      case 2:
        copy(reinterpret_cast<std::uint16_t*>(gathered_.data()));
        break;
      case 4:
        copy(reinterpret_cast<std::uint32_t*>(gathered_.data()));
        break;
      default:
        copy(reinterpret_cast<std::uint64_t*>(gathered_.data()));
    }
    check_launch("gather rows");
  }

  const Engine& engine_;
  Growth growth_;
  BlockSizes sizes_;
  std::int64_t row_bytes_;
  std::int64_t touched_ = 0;
  Search search_;
  Buffer<std::byte> gathered_;
  PackedBlock queries_;
  PackedBlock rows_;
  Buffer<std::uint32_t> searched_;
  Buffer<std::uint32_t> labels_;
  Buffer<std::uint32_t> found_;
  Buffer<double> limits_;
  Buffer<double> keys_;
  Buffer<unsigned long long> counts_;
  Buffer<double> pair_keys_;
  Buffer<std::int64_t> ids_;
  Buffer<unsigned long long> overflow_;
};

}  // namespace

std::unique_ptr<OtherRows> other_rows_of_all(const Engine& engine, const Search& search, const Growth& growth,
                                             std::uint64_t scratch) {
  return std::make_unique<OfAll>(engine, search, growth, scratch);
}

std::uint64_t of_all_scratch(const Rows& table) {
  return BlockSizes(table, Metric::euclidean, 0).bytes(table);
}

}  // namespace vicinal::cuda::density
