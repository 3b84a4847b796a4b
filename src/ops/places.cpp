// See places.hpp. Neighborhoods come from k lists among the places' first rows, one longer than needed; where the last
// entry is tied with the one before it and more places are left, the row is searched again with twice as many.
#include "ops/places.hpp"

#include <algorithm>
#include <bit>
#include <numeric>
#include <string>
#include <unordered_map>

#include "core/parallel.hpp"
#include "core/table_access.hpp"

namespace vicinal::ops {
namespace {

constexpr std::int64_t kChunk = 4096;

/// A row's numbers in one, -0 as 0.
std::uint64_t hash_of(const double* row, std::int64_t d) {
  std::uint64_t hash = 0x9e3779b97f4a7c15U;
  for (std::int64_t j = 0; j < d; ++j) {
    hash ^= std::bit_cast<std::uint64_t>(row[j] + 0.0);
    hash *= 0xff51afd7ed558ccdU;
    hash ^= hash >> 32;
  }
  return hash;
}

/// Rows of a table by their numbers, contiguously.
class Gathered {
 public:
  Gathered(const Context& ctx, const TableView& table, std::span<const std::int64_t> rows)
      : dtype_(table.dtype()), cols_(table.cols()), count_(static_cast<std::int64_t>(rows.size())) {
    const std::int64_t bytes = cols_ * size_of(dtype_);
    bytes_.resize(static_cast<std::size_t>(count_ * bytes));
    core::parallel_for(ctx, (count_ + kChunk - 1) / kChunk, [&](std::int64_t chunk, int /*worker*/) {
      for (std::int64_t i = chunk * kChunk; i < std::min(count_, (chunk + 1) * kChunk); ++i) {
        const std::int64_t row = rows[static_cast<std::size_t>(i)];
        core::copy_rows(table, row, row + 1, bytes_.data() + i * bytes);
      }
    });
  }
  [[nodiscard]] TableView view() const { return {bytes_.data(), dtype_, count_, cols_, cols_}; }

 private:
  DType dtype_;
  std::int64_t cols_;
  std::int64_t count_;
  std::vector<std::byte> bytes_;
};

/// The neighborhood that a list of places in order holds, if it is long enough to tell.
class Cut {
 public:
  Cut(const LofOptions& options, const Places& places) : options_(options), places_(places) {}

  /// How many entries of the list count; -1: it must be longer. `own`: rows at the query's own place but itself.
  [[nodiscard]] std::int64_t operator()(std::span<const std::int64_t> ids, std::span<const double> distances,
                                        std::int64_t own, bool complete) const {
    const auto size = static_cast<std::int64_t>(ids.size());
    std::int64_t count = 0;
    if (options_.duplicates == Duplicates::distinct) {
      count = options_.k;
      if (count > size) return -1;
    } else {
      std::int64_t rows = own;
      while (rows < options_.k && count < size)
        rows += places_.rows[static_cast<std::size_t>(ids[static_cast<std::size_t>(count++)])];
      if (rows < options_.k) return -1;
    }
    if (options_.ties == Ties::cut) return count;
    const double last = count > 0 ? distances[static_cast<std::size_t>(count - 1)] : 0;
    while (count < size && distances[static_cast<std::size_t>(count)] == last) ++count;
    return count < size || complete ? count : -1;
  }

 private:
  const LofOptions& options_;
  const Places& places_;
};

}  // namespace

Places places_of(const Context& ctx, const TableView& table) {
  const std::int64_t n = table.rows();
  const std::int64_t d = table.cols();
  std::vector<std::uint64_t> hashes(static_cast<std::size_t>(n));
  std::vector<std::vector<double>> rows(static_cast<std::size_t>(ctx.threads()));
  const std::int64_t step = std::clamp<std::int64_t>(65536 / d, 1, kChunk);
  core::parallel_for(ctx, (n + step - 1) / step, [&](std::int64_t chunk, int worker) {
    std::vector<double>& values = rows[static_cast<std::size_t>(worker)];
    values.resize(static_cast<std::size_t>(step * d));
    const std::int64_t end = std::min(n, (chunk + 1) * step);
    core::widen_rows(table, chunk * step, end, values.data());
    for (std::int64_t i = chunk * step; i < end; ++i) {
      hashes[static_cast<std::size_t>(i)] = hash_of(values.data() + (i - chunk * step) * d, d);
    }
  });
  // Places of one hash are a chain of rows that differ; nearly all are one long.
  Places places;
  places.of_row.resize(static_cast<std::size_t>(n));
  std::unordered_map<std::uint64_t, std::vector<std::int64_t>> seen;
  seen.reserve(static_cast<std::size_t>(n));
  std::vector<double> a(static_cast<std::size_t>(d));
  std::vector<double> b(static_cast<std::size_t>(d));
  for (std::int64_t i = 0; i < n; ++i) {
    if (i % kChunk == 0) ctx.check_cancelled();
    std::vector<std::int64_t>& chain = seen[hashes[static_cast<std::size_t>(i)]];
    if (!chain.empty()) core::widen_rows(table, i, i + 1, a.data());
    const auto same = std::find_if(chain.begin(), chain.end(), [&](std::int64_t place) {
      const std::int64_t row = places.first[static_cast<std::size_t>(place)];
      core::widen_rows(table, row, row + 1, b.data());
      return a == b;  // as numbers
    });
    std::int64_t place = static_cast<std::int64_t>(places.first.size());
    if (same != chain.end()) {
      place = *same;
      ++places.rows[static_cast<std::size_t>(place)];
    } else {
      chain.push_back(place);
      places.first.push_back(i);
      places.rows.push_back(1);
    }
    places.of_row[static_cast<std::size_t>(i)] = place;
  }
  return places;
}

PlaceGraph place_graph(const Context& ctx, const TableView& table, const Places& places, const TableView* queries,
                       const LofOptions& options) {
  const auto count = static_cast<std::int64_t>(places.first.size());
  const bool self = queries == nullptr;
  const std::int64_t others = self ? count - 1 : count;
  if (options.duplicates == Duplicates::distinct && options.k > others) {
    throw Error(ErrorCode::invalid_argument, "k: is " + std::to_string(options.k) + ", but at most " +
                                                 std::to_string(others) + " places can be neighbors: of the " +
                                                 std::to_string(places.of_row.size()) + " table rows " +
                                                 std::to_string(count) + " differ");
  }
  const Gathered gathered(ctx, table, places.first);
  const Index index(ctx, gathered.view());
  const std::int64_t m = self ? count : queries->rows();
  const auto own_rows = [&](std::int64_t row) { return self ? places.rows[static_cast<std::size_t>(row)] - 1 : 0; };

  PlaceGraph made;
  made.graph.rows = m;
  made.graph.table_rows = count;
  made.graph.metric = options.metric;
  made.graph.p = options.p;
  std::vector<std::vector<std::int64_t>> ids(static_cast<std::size_t>(m));
  std::vector<std::vector<double>> distances(static_cast<std::size_t>(m));
  const Cut cut(options, places);
  std::vector<std::int64_t> open(static_cast<std::size_t>(m));
  std::iota(open.begin(), open.end(), std::int64_t{0});
  for (std::int64_t k = std::min(options.k + 1, others); !open.empty(); k = std::min(2 * k, others)) {
    if (others == 0) break;  // one place: its own rows are the neighbors
    KnnOptions search = {.k = k, .metric = options.metric, .p = options.p, .method = options.method};
    NeighborGraph found;
    if (static_cast<std::int64_t>(open.size()) == m) {
      found = self ? knn(ctx, index, search) : knn(ctx, index, *queries, search);
      made.graph.plan = found.plan;
      made.graph.stats = found.stats;
    } else {
      const Gathered asked(ctx, self ? gathered.view() : *queries, open);
      if (self) search.exclude = open;
      found = knn(ctx, index, asked.view(), search);
    }
    std::vector<std::int64_t> still_open;
    for (std::size_t i = 0; i < open.size(); ++i) {
      const std::int64_t row = open[i];
      const auto list = found.ids_of(static_cast<std::int64_t>(i));
      const auto far = found.distances_of(static_cast<std::int64_t>(i));
      const std::int64_t size = cut(list, far, own_rows(row), k == others);
      if (size < 0) {
        still_open.push_back(row);
        continue;
      }
      ids[static_cast<std::size_t>(row)].assign(list.begin(), list.begin() + size);
      distances[static_cast<std::size_t>(row)].assign(far.begin(), far.begin() + size);
    }
    open = std::move(still_open);
  }

  made.graph.offsets.push_back(0);
  for (std::int64_t row = 0; row < m; ++row) {
    if (own_rows(row) > 0) {
      made.graph.ids.push_back(row);
      made.graph.distances.push_back(0);
      made.weights.push_back(own_rows(row));
    }
    for (const std::int64_t id : ids[static_cast<std::size_t>(row)]) {
      made.graph.ids.push_back(id);
      made.weights.push_back(places.rows[static_cast<std::size_t>(id)]);
    }
    const auto& far = distances[static_cast<std::size_t>(row)];
    made.graph.distances.insert(made.graph.distances.end(), far.begin(), far.end());
    made.graph.offsets.push_back(static_cast<std::int64_t>(made.graph.ids.size()));
  }
  return made;
}

}  // namespace vicinal::ops
