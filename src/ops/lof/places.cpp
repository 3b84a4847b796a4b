// See places.hpp. Neighborhoods come from k lists among the places' first rows, one longer than needed (for queries
// two: their own place, which is no other one, may be there); where the last entry is tied with the one before it and
// more places are left, the row is searched again with twice as many.
#include "ops/lof/places.hpp"

#include <algorithm>
#include <bit>
#include <numeric>
#include <string>
#include <unordered_map>

#include "core/memory.hpp"
#include "core/parallel.hpp"
#include "core/table_access.hpp"

namespace vicinal::ops {
namespace {

constexpr std::int64_t kChunk = 4096;
constexpr std::uint64_t kBytesOfRow = 96;    // its place, the place's first row and count, and its node in the hash map
constexpr std::uint64_t kBytesOfEntry = 40;  // id and distance in a list, and again with a weight in the graph

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
  [[nodiscard]] std::uint64_t bytes() const { return bytes_.size(); }
  [[nodiscard]] TableView view() const { return {bytes_.data(), dtype_, count_, cols_, cols_}; }

 private:
  DType dtype_;
  std::int64_t cols_;
  std::int64_t count_;
  std::vector<std::byte> bytes_;
};

/// A row's own place and what of it counts.
struct Own {
  std::int64_t place = -1;  ///< -1: a query that equals no row
  std::int64_t copies = 0;  ///< rows there but itself
  double distance = 0;      ///< theirs: 0, but of rows of zeros by cosine
};

/// The neighborhood that a list of places in order holds, if it is long enough to tell.
class Cut {
 public:
  Cut(const LofOptions& options, const Places& places) : options_(options), places_(places) {}

  /// How many entries of the list, which is of other places, count; -1: it must be longer.
  [[nodiscard]] std::int64_t operator()(std::span<const std::int64_t> ids, std::span<const double> distances,
                                        const Own& own, bool complete) const {
    const auto size = static_cast<std::int64_t>(ids.size());
    std::int64_t count = 0;
    if (options_.duplicates == Duplicates::distinct) {
      count = options_.k;
      if (count > size) return -1;
    } else {
      std::int64_t rows = own.copies;
      while (rows < options_.k && count < size)
        rows += places_.rows[static_cast<std::size_t>(ids[static_cast<std::size_t>(count++)])];
      if (rows < options_.k) return -1;
    }
    if (options_.ties == Ties::cut) return count;
    const double last = count > 0 ? distances[static_cast<std::size_t>(count - 1)] : own.distance;
    while (count < size && distances[static_cast<std::size_t>(count)] == last) ++count;
    return count < size || complete ? count : -1;
  }

 private:
  const LofOptions& options_;
  const Places& places_;
};

/// The place of the chain with this row's numbers, -1 where none has them.
std::int64_t place_in(const std::vector<std::int64_t>& chain, const TableView& table, const Places& places,
                      const std::vector<double>& row) {
  std::vector<double> other(row.size());
  for (const std::int64_t place : chain) {
    const std::int64_t first = places.first[static_cast<std::size_t>(place)];
    core::widen_rows(table, first, first + 1, other.data());
    if (other == row) return place;
  }
  return -1;
}

Own own_of(const Places& places, std::int64_t place, bool self, Metric metric, const std::vector<double>& row) {
  const bool zeros = std::all_of(row.begin(), row.end(), [](double value) { return value == 0; });
  return {place, places.rows[static_cast<std::size_t>(place)] - (self ? 1 : 0),
          metric == Metric::cosine && zeros ? 1.0 : 0.0};
}

/// Own places of all places (`queries` null), or of queries.
std::vector<Own> own_places(const Context& ctx, const TableView& table, const Places& places, const TableView* queries,
                            Metric metric) {
  const auto m = queries == nullptr ? static_cast<std::int64_t>(places.first.size()) : queries->rows();
  std::vector<Own> own(static_cast<std::size_t>(m));
  core::parallel_for(ctx, (m + kChunk - 1) / kChunk, [&](std::int64_t chunk, int /*worker*/) {
    std::vector<double> row(static_cast<std::size_t>(table.cols()));
    for (std::int64_t i = chunk * kChunk; i < std::min(m, (chunk + 1) * kChunk); ++i) {
      std::int64_t place = i;
      if (queries == nullptr) {
        const std::int64_t first = places.first[static_cast<std::size_t>(i)];
        core::widen_rows(table, first, first + 1, row.data());
      } else {
        core::widen_rows(*queries, i, i + 1, row.data());
        const auto chain = places.by_hash.find(hash_of(row.data(), table.cols()));
        place = chain == places.by_hash.end() ? -1 : place_in(chain->second, table, places, row);
      }
      if (place >= 0) own[static_cast<std::size_t>(i)] = own_of(places, place, queries == nullptr, metric, row);
    }
  });
  return own;
}

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
  Places places;
  places.of_row.resize(static_cast<std::size_t>(n));
  places.by_hash.reserve(static_cast<std::size_t>(n));
  std::vector<double> row(static_cast<std::size_t>(d));
  for (std::int64_t i = 0; i < n; ++i) {
    if (i % kChunk == 0) ctx.check_cancelled();
    std::vector<std::int64_t>& chain = places.by_hash[hashes[static_cast<std::size_t>(i)]];
    if (!chain.empty()) core::widen_rows(table, i, i + 1, row.data());
    std::int64_t place = place_in(chain, table, places, row);
    if (place < 0) {
      place = static_cast<std::int64_t>(places.first.size());
      chain.push_back(place);
      places.first.push_back(i);
      places.rows.push_back(0);
    }
    ++places.rows[static_cast<std::size_t>(place)];
    places.of_row[static_cast<std::size_t>(i)] = place;
  }
  return places;
}

PlaceGraph place_graph(const Context& ctx, const TableView& table, const Places& places, const TableView* queries,
                       const LofOptions& options) {
  const auto count = static_cast<std::int64_t>(places.first.size());
  const bool self = queries == nullptr;
  if (options.duplicates == Duplicates::distinct && options.k > count - 1) {
    throw Error(ErrorCode::invalid_argument, "k: is " + std::to_string(options.k) + ", but at most " +
                                                 std::to_string(count - 1) + " places can be neighbors: of the " +
                                                 std::to_string(places.of_row.size()) + " table rows " +
                                                 std::to_string(count) + " differ");
  }
  const std::int64_t most = self ? count - 1 : count;
  const Gathered gathered(ctx, table, places.first);
  const Index index(ctx, gathered.view(), {.packed = Packing::never});
  const std::int64_t m = self ? count : queries->rows();

  PlaceGraph made;
  made.graph.rows = m;
  made.graph.table_rows = count;
  made.graph.metric = options.metric;
  made.graph.p = options.p;
  const Cut cut(options, places);
  std::vector<Own> own;
  std::vector<std::vector<std::int64_t>> ids(static_cast<std::size_t>(m));
  std::vector<std::vector<double>> distances(static_cast<std::size_t>(m));
  std::vector<std::int64_t> open(static_cast<std::size_t>(m));
  std::iota(open.begin(), open.end(), std::int64_t{0});
  // Entries that are kept, and that this search may add; each lies in a row's vectors, then in the graph.
  std::int64_t kept = 0;
  const auto entries_fit = [&](std::int64_t entries) {
    const std::uint64_t of_rows = places.of_row.size() * kBytesOfRow + gathered.bytes();
    core::require_memory(ctx, of_rows + static_cast<std::uint64_t>(entries) * kBytesOfEntry, "lof: lists of places");
  };
  for (std::int64_t k = std::min(options.k + (self ? 1 : 2), most); !open.empty(); k = std::min(2 * k, most)) {
    entries_fit(kept + static_cast<std::int64_t>(open.size()) * k);
    NeighborGraph found;
    if (most > 0) {
      KnnOptions search = {.k = k, .metric = options.metric, .p = options.p, .method = options.method};
      if (static_cast<std::int64_t>(open.size()) == m) {
        found = self ? knn(ctx, index, search) : knn(ctx, index, *queries, search);
        made.graph.plan = found.plan;
        made.graph.stats = found.stats;
      } else {
        const Gathered asked(ctx, self ? gathered.view() : *queries, open);
        if (self) search.exclude = open;
        found = knn(ctx, index, asked.view(), search);
      }
    }
    if (own.empty()) own = own_places(ctx, table, places, queries, options.metric);  // of queries that are finite
    std::vector<std::int64_t> still_open;
    for (std::size_t i = 0; i < open.size(); ++i) {
      const auto row = static_cast<std::size_t>(open[i]);
      const auto list = found.ids_of(static_cast<std::int64_t>(i));
      const auto far = found.distances_of(static_cast<std::int64_t>(i));
      std::vector<std::int64_t>& others = ids[row];
      others.clear();
      distances[row].clear();
      for (std::size_t r = 0; r < list.size(); ++r) {
        if (list[r] == own[row].place) continue;
        others.push_back(list[r]);
        distances[row].push_back(far[r]);
      }
      const std::int64_t size = cut(others, distances[row], own[row], k == most);
      if (size < 0) {
        still_open.push_back(open[i]);
        continue;
      }
      others.resize(static_cast<std::size_t>(size));
      distances[row].resize(static_cast<std::size_t>(size));
      others.shrink_to_fit();
      distances[row].shrink_to_fit();
      kept += size;
    }
    open = std::move(still_open);
  }

  made.graph.offsets.push_back(0);
  for (std::size_t row = 0; row < static_cast<std::size_t>(m); ++row) {
    if (own[row].copies > 0) {
      made.graph.ids.push_back(own[row].place);
      made.graph.distances.push_back(own[row].distance);
      made.weights.push_back(own[row].copies);
    }
    for (const std::int64_t id : ids[row]) {
      made.graph.ids.push_back(id);
      made.weights.push_back(places.rows[static_cast<std::size_t>(id)]);
    }
    made.graph.distances.insert(made.graph.distances.end(), distances[row].begin(), distances[row].end());
    made.graph.offsets.push_back(static_cast<std::int64_t>(made.graph.ids.size()));
  }
  return made;
}

}  // namespace vicinal::ops
