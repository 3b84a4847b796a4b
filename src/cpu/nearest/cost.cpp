// What one core does in a second, measured on a Xeon of the Sapphire Rapids kind. Pairs of brute force cost their
// columns and a few more; rows that a tree touches cost their columns, what it takes to find them, and a query
// something of its own.
#include "cpu/nearest/cost.hpp"

#include <algorithm>
#include <cmath>

namespace vicinal::cpu {
namespace {

struct Rates {
  double fused;         // columns through a float32 screen, kFusedMore added
  double bytes;         // columns through the int8 screen, kBytesMore added
  double direct;        // columns, kDirectMore added
  double screened;      // seconds for each query of fused and each doubling of the rows
  double tree_column;   // seconds for each column of a row touched
  double tree_row;      // seconds for each row touched
  double tree_query;    // seconds for each query
  double entry;         // seconds for each entry of a list beyond kUsualList, of tree and direct
  double build_row;     // seconds for each row and doubling of the table
  double build_column;  // seconds for each column of such a row
};

Rates rates_of(Isa isa) {
  switch (isa) {
    case Isa::avx512:
      return {6.2e10, 2.1e11, 5e9, 0.9e-6, 0.35e-9, 1.3e-9, 1.3e-6, 0.2e-6, 4e-9, 0.5e-9};
    case Isa::avx2:
      return {3.5e10, 1e11, 3e9, 1e-6, 0.45e-9, 1.4e-9, 1.4e-6, 0.22e-6, 4e-9, 0.5e-9};
    default:
      return {8e9, 8e9, 2e9, 3e-6, 2.8e-9, 4e-9, 3e-6, 0.4e-6, 4e-9, 0.5e-9};
  }
}
constexpr double kFusedMore = 18;
constexpr double kBytesMore = 52;
constexpr double kDirectMore = 8;
constexpr double kRankMore = 90;          // columns, added to those of a row that screens leave
constexpr double kUsualList = 10;         // entries of a list whose time is in the figures of queries
constexpr double kScreenedEntry = 45e-9;  // seconds for each other one of fused and each doubling of the rows
constexpr double kFewRows = 8;            // that a query's thresholds and survivors take no time for
constexpr double kCacheBytes = 1 << 20;   // a tree of so many, or fewer, is read from a core's own cache ...
constexpr double kInCache = 0.55;         // ... in this share of the time
constexpr double kPowers = 3e7;           // columns of minkowski, whatever the method

// The fused method packs the table once a call: below this many queries ranking every row directly is quicker.
constexpr std::int64_t kFewQueries = 24;
// Where the index has the table packed, so many columns of rows are worth the screen's own steps.
constexpr double kWorthScreening = 1 << 17;
// Above this many neighbors most of what the screen lets through is an answer, and keeping it costs more than the
// products.
constexpr std::int64_t kManyNeighbors = 4096;

/// Entries of a long list: whatever enters is ranked, and moves others (measured from 10 to 1,000, of 10,000 and
/// 100,000 rows of 3 to 64 columns).
double more_entries(const kernels::NearestTask& task) {
  return std::max(static_cast<double>(task.k) - kUsualList, 0.0);
}

/// Of one query and all rows, on one core.
double pairs_seconds(Isa isa, const kernels::NearestTask& task, bool bytes) {
  const auto rows = static_cast<double>(task.index->distinct_rows());
  const auto columns = static_cast<double>(task.queries.cols());
  const Rates rates = rates_of(isa);
  double seconds = (columns + kDirectMore) / rates.direct;
  if (task.method == Method::fused) {
    seconds = bytes ? (columns + kBytesMore) / rates.bytes : (columns + kFusedMore) / rates.fused;
  }
  if (task.metric == Metric::minkowski) seconds = columns / kPowers;
  double each = rows * seconds;
  if (task.method == Method::fused) {
    each += (rates.screened + kScreenedEntry * more_entries(task)) * std::log2(std::max(rows / kFewRows, 1.0));
  } else {
    each += rates.entry * more_entries(task);
  }
  return each;
}

/// Of a row that a tree touches, on one core.
double tree_row_seconds(Isa isa, const kernels::NearestTask& task, double cached) {
  const Rates rates = rates_of(isa);
  const double column = task.metric == Metric::minkowski ? 1.5 / kPowers : cached * rates.tree_column;
  return cached * rates.tree_row + column * static_cast<double>(task.queries.cols());
}

}  // namespace

std::int64_t tree_rows_of_screens(Isa isa, const kernels::NearestTask& task, bool bytes) {
  return static_cast<std::int64_t>(pairs_seconds(isa, task, bytes) / tree_row_seconds(isa, task, 1));
}

kernels::Costs costs(const Context& ctx, const kernels::NearestTask& task, bool bytes) {
  const Rates rates = rates_of(ctx.isa());
  const auto columns = static_cast<double>(task.queries.cols());
  const TableView& table = task.index->table;
  const double bytes_read = static_cast<double>(table.rows()) * columns * static_cast<double>(size_of(table.dtype()));
  const double cached = bytes_read <= kCacheBytes ? kInCache : 1;
  kernels::Costs costs;
  const double queries = static_cast<double>(task.queries.rows()) / ctx.threads();
  costs.brute = queries * pairs_seconds(ctx.isa(), task, bytes);
  costs.brute_fine = queries * pairs_seconds(ctx.isa(), task, false);
  if (task.method == Method::fused) costs.rank = (columns + kRankMore) / rates.direct / ctx.threads();
  costs.tree_build = (rates.build_row + rates.build_column * columns) / ctx.threads();
  costs.tree_query = (cached * rates.tree_query + rates.entry * more_entries(task)) / ctx.threads();
  costs.tree_row = tree_row_seconds(ctx.isa(), task, cached) / ctx.threads();
  return costs;
}

kernels::Choice choose(const kernels::NearestTask& task, bool can_fuse, bool packed) {
  if (!can_fuse) {
    return {Method::direct, "the metric is not an inner product in disguise, so every key is computed"};
  }
  const auto are_worth_screening = [&] {  // their number may be too large for an integer
    return static_cast<double>(task.queries.rows()) * static_cast<double>(task.index->distinct_rows()) *
               static_cast<double>(task.queries.cols()) >=
           kWorthScreening;
  };
  if (task.queries.rows() < kFewQueries && !(packed && are_worth_screening())) {
    return {Method::direct, "few queries: packing the table for the screen would cost more than it saves"};
  }
  if (task.k > kManyNeighbors) {
    return {Method::direct, "so many neighbors that a screen would let most rows through"};
  }
  if (task.pruned) {
    return {Method::fused, "a bound in few columns of the rotated rows drops most rows before their keys are needed"};
  }
  return {Method::fused, "low-precision products with a proven bound drop almost every row before its key is needed"};
}

}  // namespace vicinal::cpu
