// memberships of HDBSCAN (contract clause 29). A batch's matrix first gets the distances of its rows to the nearest
// exemplar of each cluster. Of a cluster with many exemplars a search finds them; those of all others, which would be
// many small searches, are compared one by one. Then each row is turned into memberships in place.
#include "vicinal/memberships.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "core/entry.hpp"
#include "core/infinity.hpp"
#include "core/memory.hpp"
#include "core/parallel.hpp"
#include "core/poll.hpp"
#include "core/table_access.hpp"
#include "ops/common/prepared_rows.hpp"
#include "ops/common/refuse.hpp"
#include "ops/density/branches.hpp"
#include "ops/density/clustering.hpp"
#include "ops/density/hierarchy.hpp"
#include "ops/density/placed_rows.hpp"
#include "ops/density/reaching.hpp"
#include "ops/density/soft_rows.hpp"

namespace vicinal {
namespace {

const char* const kMemberships = "memberships";

constexpr std::int64_t kBatchNumbers = std::int64_t{1} << 22;  // that a batch has at most, unless it has few rows
constexpr std::int64_t kMinBatchRows = 16;
constexpr std::int64_t kTaskNumbers = std::int64_t{1} << 14;  // some milliseconds of work
constexpr std::int64_t kGatheredRows = 4096;                  // of a task
constexpr std::int64_t kFewExemplars = 256;                   // that are not searched for

std::int64_t batch_rows(std::int64_t m, std::int64_t clusters) {
  return std::min(m, std::max(kMinBatchRows, kBatchNumbers / std::max<std::int64_t>(clusters, 1)));
}

KnnOptions nearest_exemplar(const HdbscanOptions& options) {
  return {.k = 1, .metric = options.metric, .p = options.p, .method = options.method};
}

/// A table of this many rows for a plan, which reads none of its values.
TableView shape_of(const TableView& table, DType dtype, std::int64_t rows) {
  return {table.data(), dtype, rows, table.cols(), 0, 0};
}

std::uint64_t exemplar_bytes(std::int64_t exemplars, std::int64_t cols) {
  return static_cast<std::uint64_t>(exemplars) * static_cast<std::uint64_t>(cols) * sizeof(double);
}

/// The largest cluster's exemplars, and the search among them for a batch.
std::uint64_t search_bytes(const Context& ctx, const TableView& rows, std::int64_t exemplars, std::int64_t batch,
                           const HdbscanOptions& options) {
  if (exemplars == 0) return 0;
  const TableView among = shape_of(rows, DType::float64, exemplars);
  const TableView searched = shape_of(rows, rows.dtype(), batch);
  const std::uint64_t own = exemplar_bytes(exemplars, rows.cols());
  return own + plan_knn(core::beside(ctx, own), among, &searched, nearest_exemplar(options)).memory;
}

/// The most exemplars of a cluster that are searched for.
std::int64_t most_searched(const Hdbscan& fitted) {
  std::int64_t most = 0;
  for (std::size_t label = 0; label + 1 < fitted.exemplar_offsets.size(); ++label) {
    most = std::max(most, fitted.exemplar_offsets[label + 1] - fitted.exemplar_offsets[label]);
  }
  return most > kFewExemplars ? most : 0;
}

/// All exemplars, their rows and numbers, and a row of each thread.
std::uint64_t few_bytes(const Context& ctx, std::int64_t exemplars, std::int64_t cols) {
  const auto d = static_cast<std::uint64_t>(cols);
  // A vector that grows has room for twice as many.
  return static_cast<std::uint64_t>(exemplars) * (d * sizeof(double) + 2 * sizeof(std::int64_t) + 1) +
         static_cast<std::uint64_t>(ctx.threads()) * d * sizeof(double);
}

[[noreturn]] void refuse_exemplars(const Hdbscan& fitted) {
  refuse("model: its exemplars are not those of the " + std::to_string(fitted.clusters) +
         " clusters of its condensed tree");
}

/// Refuses a clustering of other rows, and exemplars that are not those of the clustering's labels.
void check_fitted(const Hdbscan& fitted, std::int64_t n) {
  ops::check_clustering(fitted, n);
  const auto clusters = static_cast<std::size_t>(std::max<std::int64_t>(fitted.clusters, 0));
  const std::vector<std::int64_t>& offsets = fitted.exemplar_offsets;
  const bool has_all = fitted.clusters >= 0 && fitted.clusters <= n && offsets.size() == clusters + 1 &&
                       offsets.front() == 0 && offsets.back() == std::ssize(fitted.exemplars) &&
                       std::is_sorted(offsets.begin(), offsets.end());
  if (!has_all) refuse_exemplars(fitted);
  std::vector<std::int64_t> labelled(clusters, 0);
  for (const std::int64_t label : fitted.tree.labels) {
    if (label >= 0 && label < fitted.clusters) ++labelled[static_cast<std::size_t>(label)];
  }
  const bool fits = std::all_of(labelled.begin(), labelled.end(), [](std::int64_t count) { return count == 1; }) &&
                    std::all_of(fitted.tree.labels.begin(), fitted.tree.labels.end(),
                                [&](std::int64_t label) { return label < fitted.clusters; });
  const bool are_rows = std::all_of(fitted.exemplars.begin(), fitted.exemplars.end(),
                                    [&](std::int64_t row) { return row >= 0 && row < n; });
  if (!fits || !are_rows) refuse_exemplars(fitted);
}

std::int64_t exemplars_of(const Hdbscan& fitted, std::int64_t label) {
  const auto at = static_cast<std::size_t>(label);
  return fitted.exemplar_offsets[at + 1] - fitted.exemplar_offsets[at];
}

/// Those of clusters with few, one cluster after the other.
std::vector<std::int64_t> few_exemplars(const Hdbscan& fitted) {
  std::vector<std::int64_t> rows;
  for (std::int64_t label = 0; label < fitted.clusters; ++label) {
    if (exemplars_of(fitted, label) > kFewExemplars) continue;
    const auto first = fitted.exemplars.begin() + fitted.exemplar_offsets[static_cast<std::size_t>(label)];
    rows.insert(rows.end(), first, first + exemplars_of(fitted, label));
  }
  return rows;
}

/// What a worker needs.
struct WorkRoom {
  ops::SoftRoom soft;
  std::vector<double> row;  // [cols]
};

class Weighing {
 public:
  /// `reached`: of new rows; nullptr: the rows are those of the table.
  Weighing(const Context& ctx, const Index& index, const Hdbscan& fitted, const TableView& rows,
           const ops::Reached* reached)
      : ctx_(ctx),
        index_(index),
        fitted_(fitted),
        rows_(rows),
        reached_(reached),
        branches_(ctx, fitted.tree, fitted.clusters),
        few_(ctx, index.table(), few_exemplars(fitted), fitted.options.metric, fitted.options.p),
        rooms_(static_cast<std::size_t>(ctx.threads())) {
    for (WorkRoom& room : rooms_) {
      room.soft = branches_.room();
      room.row.resize(static_cast<std::size_t>(index.cols()));
    }
  }

  /// The memberships of rows [first, last), [last - first, clusters].
  void weigh(std::int64_t first, std::int64_t last, double* values) {
    ctx_.report(kMemberships, static_cast<double>(first) / static_cast<double>(rows_.rows()));
    const std::int64_t clusters = fitted_.clusters;
    if (clusters == 0) return;
    for (std::int64_t label = 0; label < clusters; ++label) {
      if (exemplars_of(fitted_, label) > kFewExemplars) search(first, last, label, values);
    }
    const std::int64_t step = std::max<std::int64_t>(1, kTaskNumbers / (clusters + few_.count() * (1 + few_.cols())));
    const std::int64_t tasks = (last - first + step - 1) / step;
    core::parallel_for(ctx_, tasks, [&](std::int64_t task, int worker) {
      WorkRoom& room = rooms_[static_cast<std::size_t>(worker)];
      const std::int64_t end = std::min(last, first + (task + 1) * step);
      for (std::int64_t row = first + task * step; row < end; ++row) {
        double* const own = values + (row - first) * clusters;
        compare(row, own, room.row.data());
        weigh_row(row, own, room.soft);
      }
    });
  }

 private:
  /// Column `label` of the matrix, of a cluster with many exemplars.
  void search(std::int64_t first, std::int64_t last, std::int64_t label, double* values) {
    const auto begin = static_cast<std::size_t>(fitted_.exemplar_offsets[static_cast<std::size_t>(label)]);
    const std::int64_t count = exemplars_of(fitted_, label);
    const std::int64_t d = index_.cols();
    const auto exemplars = std::make_unique_for_overwrite<double[]>(static_cast<std::size_t>(count * d));
    core::parallel_for(ctx_, (count + kGatheredRows - 1) / kGatheredRows, [&](std::int64_t task, int) {
      const std::int64_t end = std::min(count, (task + 1) * kGatheredRows);
      for (std::int64_t i = task * kGatheredRows; i < end; ++i) {
        const std::int64_t row = fitted_.exemplars[begin + static_cast<std::size_t>(i)];
        core::widen_rows(index_.table(), row, row + 1, exemplars.get() + i * d);
      }
    });
    const NeighborGraph nearest = find_nearest(first, last, label, TableView(exemplars.get(), count, d));
    for (std::int64_t row = 0; row < last - first; ++row) {
      values[row * fitted_.clusters + label] = nearest.distances[static_cast<std::size_t>(row)];
    }
  }

  [[nodiscard]] NeighborGraph find_nearest(std::int64_t first, std::int64_t last, std::int64_t label,
                                           const TableView& exemplars) const {
    try {
      const Context rest = core::beside(ctx_, exemplar_bytes(exemplars.rows(), exemplars.cols()));
      return knn(rest, Index(rest, exemplars, {.packed = Packing::never}), rows_.slice(first, last),
                 nearest_exemplar(fitted_.options));
    } catch (const Error& error) {
      if (error.code() != ErrorCode::bad_data || reached_ != nullptr) throw;
      // The index has found every value finite. The search numbers rows of the batch and exemplars.
      throw Error(ErrorCode::bad_data, "table: a distance of one of the rows " + std::to_string(first) + " to " +
                                           std::to_string(last - 1) + " and an exemplar of cluster " +
                                           std::to_string(label) + " overflows float64; scale the data down");
    }
  }

  /// The columns of clusters with few exemplars, in one row of the matrix.
  void compare(std::int64_t row, double* values, double* room) const {
    const ops::ComparedRow compared = few_.compared(rows_, row, room);
    std::int64_t place = 0;
    for (std::int64_t label = 0; label < fitted_.clusters; ++label) {
      const std::int64_t count = exemplars_of(fitted_, label);
      if (count > kFewExemplars) continue;
      double least = kInfinity;
      for (const std::int64_t end = place + count; place < end; ++place) {
        if ((place + 1) % few_.polled_pairs() == 0) ctx_.check_cancelled();
        const double key = few_.key_to(compared, place);
        if (!(key < kInfinity)) refuse_overflow(row, few_.row_at(place));
        least = std::min(least, key);
      }
      values[label] = count == 0 ? kInfinity : few_.reported(least);
    }
  }

  [[noreturn]] void refuse_overflow(std::int64_t row, std::int64_t exemplar) const {
    throw Error(ErrorCode::bad_data, std::string(reached_ != nullptr ? "queries" : "table") + ": the distance of row " +
                                         std::to_string(row) + " and row " + std::to_string(exemplar) +
                                         " of the table, an exemplar, overflows float64; scale the data down");
  }

  void weigh_row(std::int64_t row, double* values, ops::SoftRoom& room) const {
    const auto at = static_cast<std::size_t>(row);
    if (reached_ == nullptr) {
      const auto cluster = static_cast<std::size_t>(fitted_.tree.row_clusters[at]);
      const double lambda = ops::lambda_of(fitted_.tree.row_distances[at]);
      branches_.find_heights(cluster, lambda, room);
      return ops::weigh_fitted_row(branches_, cluster, lambda, room, values);
    }
    const std::int64_t by = reached_->rows[at];
    const double reached_at = ops::lambda_of(reached_->distances[at]);
    const std::size_t cluster = ops::cluster_reached(fitted_.tree, by, reached_at);
    const double own = ops::lambda_of(fitted_.tree.row_distances[static_cast<std::size_t>(by)]);
    const double lambda = std::min(reached_at, own);
    branches_.find_heights(cluster, lambda, room);
    ops::weigh_new_row(branches_, cluster, lambda, room, values);
  }

  const Context& ctx_;
  const Index& index_;
  const Hdbscan& fitted_;
  const TableView& rows_;
  const ops::Reached* reached_;
  ops::Branches branches_;
  ops::PlacedRows few_;          // the exemplars of clusters with few
  std::vector<WorkRoom> rooms_;  // [threads]
};

/// Beside the search for a batch: `result_bytes`, what new rows reach, the condensed tree and the exemplars.
std::uint64_t kept_bytes(const Context& ctx, const Index& index, const Hdbscan& fitted, const TableView* queries,
                         std::uint64_t result_bytes) {
  const std::uint64_t reached_bytes =
      queries != nullptr ? static_cast<std::uint64_t>(queries->rows()) * 2 * sizeof(double) : 0;
  return result_bytes + reached_bytes +
         ops::Branches::bytes(std::ssize(fitted.tree.parents), fitted.clusters, ctx.threads()) +
         few_bytes(ctx, std::ssize(fitted.exemplars), index.cols());
}

/// Of a batch's memberships.
std::uint64_t batch_bytes(std::int64_t m, std::int64_t clusters) {
  return static_cast<std::uint64_t>(batch_rows(m, clusters) * clusters) * sizeof(double);
}

/// In batches of at most `batch_rows`. `place_of`: where the memberships of rows [first, last) go; `done` is called
/// when they are there. `result_bytes`: of what the caller keeps.
void weigh_all(const Context& ctx, const Index& index, const Hdbscan& fitted, const TableView* queries,
               std::uint64_t result_bytes,
               const std::function<double*(std::int64_t first, std::int64_t last)>& place_of,
               const std::function<void(std::int64_t first, std::int64_t last)>& done) {
  if (index.table().memory() == Memory::cuda) {
    refuse("model: memberships need its rows in host memory, but they are in device memory");
  }
  const TableView& rows = queries != nullptr ? *queries : index.table();
  ops::Reached reached;
  const std::int64_t step = batch_rows(rows.rows(), fitted.clusters);
  const std::uint64_t kept = kept_bytes(ctx, index, fitted, queries, result_bytes);
  const Context rest = core::beside(ctx, kept);
  core::require_memory(ctx, kept + search_bytes(rest, rows, most_searched(fitted), step, fitted.options), kMemberships);
  if (queries != nullptr) reached = ops::reach_rows(ctx, index, fitted, rows, result_bytes);
  Weighing weighing(rest, index, fitted, rows, queries != nullptr ? &reached : nullptr);
  for (std::int64_t first = 0; first < rows.rows(); first += step) {
    const std::int64_t last = std::min(first + step, rows.rows());
    weighing.weigh(first, last, place_of(first, last));
    done(first, last);
  }
  ctx.report(kMemberships, 1);
}

Memberships all_memberships(const Context& ctx, const Index& index, const Hdbscan& fitted, const TableView* queries) {
  check_fitted(fitted, index.rows());
  Memberships found;
  found.rows = queries != nullptr ? queries->rows() : index.rows();
  found.clusters = fitted.clusters;
  __extension__ using Wide = unsigned __int128;
  const Wide bytes = static_cast<Wide>(found.rows) * static_cast<Wide>(found.clusters) * sizeof(double);
  // What does not fit 64 bits is beyond any limit.
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max() / 4;
  const auto result_bytes = static_cast<std::uint64_t>(std::min<Wide>(bytes, kMost));
  weigh_all(
      ctx, index, fitted, queries, result_bytes,
      [&](std::int64_t first, std::int64_t last) {
        // Batch by batch: to clear all at once takes long, and nothing would look at the token meanwhile.
        if (first == 0) found.values.reserve(static_cast<std::size_t>(found.rows * found.clusters));
        found.values.resize(static_cast<std::size_t>(last * found.clusters));
        return found.values.data() + first * found.clusters;
      },
      [](std::int64_t, std::int64_t) {});
  return found;
}

/// Of rows as the model's were given: a Table or a TableView.
template <class Rows>
Memberships memberships_of(const Context& ctx, const HdbscanModel& model, const Rows& queries) {
  return ops::with_prepared(ctx, model.preparation, queries, "queries",
                            [&](const Context& rest, const TableView& rows) {
                              return all_memberships(rest, model.index, model.fitted, &rows);
                            });
}

}  // namespace

Memberships memberships(const Context& ctx, const Index& index, const Hdbscan& fitted) try {
  const core::Entry entry;
  return all_memberships(ctx, index, fitted, nullptr);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

Memberships memberships(const Context& ctx, const Index& index, const Hdbscan& fitted, const TableView& queries) try {
  const core::Entry entry;
  return all_memberships(ctx, index, fitted, &queries);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

Memberships memberships(const Context& ctx, const HdbscanModel& model, const Table& queries) try {
  const core::Entry entry;
  return memberships_of(ctx, model, queries);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

Memberships memberships(const Context& ctx, const HdbscanModel& model, const TableView& queries) try {
  const core::Entry entry;
  return memberships_of(ctx, model, queries);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

void membership_batches(const Context& ctx, const Index& index, const Hdbscan& fitted, const TableView* queries,
                        const TakeMemberships& take) try {
  const core::Entry entry;
  if (!take) refuse("take: is empty");
  check_fitted(fitted, index.rows());
  Memberships batch;
  batch.clusters = fitted.clusters;
  weigh_all(
      ctx, index, fitted, queries, batch_bytes(queries != nullptr ? queries->rows() : index.rows(), batch.clusters),
      [&](std::int64_t first, std::int64_t last) {
        batch.first = first;
        batch.rows = last - first;
        batch.values.resize(static_cast<std::size_t>(batch.rows * batch.clusters));
        return batch.values.data();
      },
      [&](std::int64_t, std::int64_t) { take(batch); });
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

std::uint64_t membership_bytes(const Context& ctx, const Index& index, const Hdbscan& fitted,
                               const TableView& queries) try {
  const core::Entry entry;
  check_fitted(fitted, index.rows());
  const std::uint64_t result_bytes = batch_bytes(queries.rows(), fitted.clusters);
  const std::uint64_t kept = kept_bytes(ctx, index, fitted, &queries, result_bytes);
  const std::int64_t step = batch_rows(queries.rows(), fitted.clusters);
  const std::uint64_t weighing =
      kept + search_bytes(core::beside(ctx, kept), queries, most_searched(fitted), step, fitted.options);
  return std::max(weighing, ops::plan_reach(ctx, index, fitted, queries, result_bytes).memory);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

std::uint64_t membership_bytes(const Context& ctx, const TableView& table, const HdbscanOptions& options) try {
  const core::Entry entry;
  if (options.min_cluster_size < 2) {
    refuse("min_cluster_size: is " + std::to_string(options.min_cluster_size) + ", must be at least 2");
  }
  const std::int64_t n = table.rows();
  const std::int64_t clusters = std::max<std::int64_t>(1, n / options.min_cluster_size);
  // The fewer clusters, the more rows a batch has.
  const std::int64_t all = clusters < kBatchNumbers / std::max<std::int64_t>(n, 1) ? n * clusters : kBatchNumbers;
  const std::int64_t numbers = std::max(all, std::min(n, kMinBatchRows) * clusters);
  return search_bytes(ctx, table, n, std::min(n, kBatchNumbers), options) +
         ops::Branches::bytes(2 * clusters + 1, clusters, ctx.threads()) + few_bytes(ctx, n, table.cols()) +
         static_cast<std::uint64_t>(numbers) * sizeof(double);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

}  // namespace vicinal
