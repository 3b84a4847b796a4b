// Scores, the certificate they end with, and the choice by the clock. See product.hpp.
#include "cpu/nearest/papers/product.hpp"

#include <algorithm>
#include <chrono>
#include <limits>

#include "core/infinity.hpp"
#include "core/philox.hpp"
#include "core/seconds.hpp"

namespace vicinal::cpu::papers {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();
constexpr std::int64_t kStretch = 64;  // panels of one stretch of rows

// Where one query stands.
struct ProductQuery {
  double limit;         // no answer has a larger key
  Threshold threshold;  // what its scores were formed with; open: they say nothing
};

Threshold threshold_of(const Workspace& work, std::int64_t i, double limit) {
  const bool cosine = work.task().metric == Metric::cosine;  // its screen works on sums of squares, twice the key
  return work.screens()[0].threshold(work.batch().terms(0, i), cosine ? 2 * limit : limit,
                                     work.rows().packed(0).typical_norm);
}

// A key that k eligible rows do not exceed: of rows evenly spread over the table, and of all if those are too few.
double limit_from_some_rows(const Workspace& work, std::int64_t i, Scratch& scratch) {
  const std::int64_t n = work.n();
  const std::int64_t k = work.task().k;
  std::vector<double>& keys = scratch.keys;
  for (const std::int64_t count : {std::min(n, 4 * k + 64), n}) {
    keys.clear();
    for (std::int64_t j = 0; j < count; ++j) {
      const std::int64_t row = j * (n / count);
      if (work.eligible(i, row)) keys.push_back(work.key(i, row));
    }
    if (static_cast<std::int64_t>(keys.size()) >= k) break;
  }
  std::nth_element(keys.begin(), keys.begin() + (k - 1), keys.end());
  return keys[static_cast<std::size_t>(k - 1)];
}

// The scores of a tile of queries and every row, [tile, n] in scratch.scores; -infinity for rows that may not be
// neighbors.
std::vector<ProductQuery> product_scores(const Workspace& work, std::int64_t tile_number, Scratch& scratch) {
  const SimdKernels& simd = work.simd();
  const std::int64_t n = work.n();
  const std::int64_t first = tile_number * simd.tile_queries;
  const std::int64_t count = std::min<std::int64_t>(simd.tile_queries, work.batch().size() - first);
  const std::int64_t capacity = kStretch * simd.tile_rows;
  scratch.scores.resize(static_cast<std::size_t>(count * n));
  scratch.survivors.resize(static_cast<std::size_t>(count * capacity));
  std::vector<ProductQuery> queries;
  float a[kMaxTileQueries] = {};
  float b[kMaxTileQueries] = {};
  float every[kMaxTileQueries];  // the product's own threshold: every row passes, in the order of the rows
  std::fill(std::begin(every), std::end(every), kNever);
  for (std::int64_t q = 0; q < count; ++q) {
    const std::int64_t i = first + q;
    const bool usable = work.batch().terms(0, i).usable;
    const double limit = usable ? limit_from_some_rows(work, i, scratch) : kInfinity;
    queries.push_back({limit, threshold_of(work, i, limit)});
    a[q] = static_cast<float>(queries.back().threshold.a);
    b[q] = static_cast<float>(queries.back().threshold.b);
  }
  const PackedRows& packed = work.rows().packed(0);
  const std::int64_t row_bytes = Screen::row_bytes(ScreenType::float32, work.task().queries.cols());
  for (std::int64_t begin = 0; begin < n; begin += capacity) {
    work.context().check_cancelled();
    const std::int64_t end = std::min(n, begin + capacity);
    std::int32_t counts[kMaxTileQueries] = {};
    for (std::int64_t row = begin; row < end; row += simd.tile_rows) {
      ScreenTile tile{};
      tile.queries = work.batch().panel(0, tile_number);
      tile.rows = packed.panels + row * row_bytes;
      tile.start = packed.start + row;
      tile.rho = packed.rho + row;
      tile.kappa = packed.kappa + row;
      tile.a = a;
      tile.b = b;
      tile.threshold = every;
      tile.words = row_bytes / 4;
      tile.valid_queries = static_cast<std::int32_t>(count);
      tile.valid_rows = static_cast<std::int32_t>(std::min<std::int64_t>(simd.tile_rows, n - row));
      tile.first_row = static_cast<std::uint32_t>(row - begin);
      tile.survivors = scratch.survivors.data();
      tile.capacity = capacity;
      tile.counts = counts;
      simd.screens[screen_index(ScreenType::float32)](tile);
    }
    for (std::int64_t q = 0; q < count; ++q) {
      const Survivor* from = scratch.survivors.data() + q * capacity;
      for (std::int32_t s = 0; s < counts[q]; ++s, ++from) {
        const std::int64_t row = begin + from->row;
        scratch.scores[q * n + row] = work.eligible(first + q, row) ? from->score : kNever;
      }
    }
  }
  return queries;
}

// The k nearest of query i of the batch, from rows in descending order of their scores.
template <class Selection>
void take_nearest(const Workspace& work, std::int64_t i, const ProductQuery& query, Selection& selection, List list) {
  NearestHeap heap = list.heap();
  double limit = query.limit;
  double least = query.threshold.t;
  for (Ranked best{}; selection.next(best) && !(static_cast<double>(best.score) < least);) {
    work.context().check_cancelled();
    heap.offer(work.key(i, best.row), best.row);
    if (!(heap.limit() < limit)) continue;
    limit = heap.limit();
    // A threshold of other a and b (it may change its form) is not one of these scores.
    const Threshold now = threshold_of(work, i, limit);
    if (now.a <= query.threshold.a && now.b <= query.threshold.b) least = std::max(least, now.t);
  }
  heap.sort();
}

// The same without scores: every key.
void rank_all(const Workspace& work, std::int64_t i, Scratch& scratch, List list) {
  scratch.keys.resize(static_cast<std::size_t>(work.n()));
  work.keys_of_tile(i, 1, 0, work.n(), scratch.keys.data());
  NearestHeap heap = list.heap();
  for (std::int64_t row = 0; row < work.n(); ++row) {
    if (scratch.keys[static_cast<std::size_t>(row)] < kInfinity) {
      heap.offer(scratch.keys[static_cast<std::size_t>(row)], row);
    }
  }
  heap.sort();
}

// What a selection takes for query 0 of the batch, its making included.
template <class Make>
double seconds_of(const Workspace& work, const ProductQuery& query, List list, const Make& make) {
  const auto start = std::chrono::steady_clock::now();
  auto selection = make();
  take_nearest(work, 0, query, selection, list);
  return seconds_since(start);
}

}  // namespace

void select_from_products(const Workspace& work, Method method, std::int64_t tile, const List* lists,
                          Scratch& scratch) {
  const std::vector<ProductQuery> queries = product_scores(work, tile, scratch);
  const std::int64_t first = tile * work.simd().tile_queries;
  const SelectionTimer timer(scratch);
  for (std::size_t q = 0; q < queries.size(); ++q) {
    const std::int64_t i = first + static_cast<std::int64_t>(q);
    float* scores = scratch.scores.data() + static_cast<std::int64_t>(q) * work.n();
    if (queries[q].threshold.open()) {
      rank_all(work, i, scratch, lists[i]);
    } else if (method == Method::product_kmin) {
      KMinSearch selection(scores, work.n(), scratch);
      take_nearest(work, i, queries[q], selection, lists[i]);
    } else {
      BitonicSort selection(work.context(), scores, work.n(), scratch);
      take_nearest(work, i, queries[q], selection, lists[i]);
    }
  }
}

Method quicker_selection(Workspace& work, Scratch& scratch) {
  const auto m = static_cast<double>(work.task().queries.rows());
  const auto drawn = static_cast<std::int64_t>(core::philox_uniform(0, 0, 0) * m);
  work.load(drawn, drawn + 1);
  const std::vector<ProductQuery> queries = product_scores(work, 0, scratch);
  if (queries[0].threshold.open()) return Method::product_kmin;
  std::vector<double> keys(static_cast<std::size_t>(work.task().k));
  std::vector<std::int64_t> ids(keys.size());
  const List list{keys.data(), ids.data(), work.task().k};
  // The sort first: the tournament uses the scores up.
  const double bitonic = seconds_of(
      work, queries[0], list, [&] { return BitonicSort(work.context(), scratch.scores.data(), work.n(), scratch); });
  const double kmin =
      seconds_of(work, queries[0], list, [&] { return KMinSearch(scratch.scores.data(), work.n(), scratch); });
  return kmin <= bitonic ? Method::product_kmin : Method::product_bitonic;
}

}  // namespace vicinal::cpu::papers
