// Silhouettes (contract clause 21). A block of rows at a time is searched for all rows of the table, so that distances
// are those of every other operation and of the context's device, and no n x n matrix is made. Then each row of the
// block adds up its distances, in the order of the table, for one labeling after the other. Means over rows are added
// up at the end, in their order, so that threads do not show.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/entry.hpp"
#include "core/memory.hpp"
#include "core/parallel.hpp"
#include "core/poll.hpp"
#include "ops/common/check.hpp"
#include "ops/common/refuse.hpp"
#include "vicinal/knn.hpp"
#include "vicinal/metrics.hpp"

namespace vicinal {
namespace {

constexpr std::int64_t kMaxBlockRows = 256;
constexpr std::int64_t kMinBlockRows = 8;
constexpr std::int64_t kMaxLabels = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kBlockPairs = std::int64_t{1} << 22;  // that a block has at most, unless it has few rows

std::int64_t block_rows(std::int64_t n) {
  return std::min(n, std::clamp(kBlockPairs / n, kMinBlockRows, kMaxBlockRows));
}

KnnOptions all_rows_of(const TableView& table, const SilhouetteOptions& options) {
  return {.k = table.rows(), .metric = options.metric, .p = options.p, .method = Method::direct};
}

void check_silhouette(const Context& ctx, const TableView& table, const SilhouetteOptions& options) {
  check_table(ctx, table, "table");
  if (options.metric == Metric::inner_product) {
    refuse("metric: inner_product has no distances, which silhouettes are made of");
  }
}

void check_clusters(const Context& ctx, const Labeling& labeling, std::int64_t n, std::size_t position) {
  if (labeling.clusters < 1 || labeling.clusters > kMaxLabels) {
    refuse(
        fmt::format("labelings: number {} has {} clusters, must have from 1 to 2^31 - 1", position, labeling.clusters));
  }
  if (static_cast<std::int64_t>(labeling.labels.size()) != n) {
    refuse(fmt::format("labelings: number {} has {} labels, but the table has {} rows", position,
                       labeling.labels.size(), n));
  }
  core::Poll poll(ctx);
  for (std::size_t i = 0; i < labeling.labels.size(); ++i) {
    poll.step();
    if (labeling.labels[i] >= 0 && labeling.labels[i] < labeling.clusters) continue;
    refuse(fmt::format("labelings: number {} has label {} at row {}, must be from 0 to {}", position,
                       labeling.labels[i], i, labeling.clusters - 1));
  }
}

/// What a worker adds up for one row.
struct Room {
  std::vector<double> distances;  // [n] in the order of the table
  std::vector<double> sums;       // of the clusters
};

/// The silhouette of row i, whose distances to all rows are known.
double silhouette_of(const Labeling& labeling, const std::vector<std::int64_t>& sizes, std::size_t i, Room& room) {
  std::fill_n(room.sums.begin(), sizes.size(), 0.0);
  const std::vector<double>& distances = room.distances;
  const std::int32_t* const labels = labeling.labels.data();
  for (std::size_t j = 0; j < i; ++j) room.sums[static_cast<std::size_t>(labels[j])] += distances[j];
  for (std::size_t j = i + 1; j < distances.size(); ++j) room.sums[static_cast<std::size_t>(labels[j])] += distances[j];
  const auto own = static_cast<std::size_t>(labels[i]);
  double nearest = INFINITY;
  bool others = false;
  for (std::size_t c = 0; c < sizes.size(); ++c) {
    if (sizes[c] == 0) continue;
    if (!std::isfinite(room.sums[c])) {
      throw Error(ErrorCode::bad_data,
                  fmt::format("table: the sum of the distances of row {} overflows float64; scale the data down", i));
    }
    if (c == own) continue;
    nearest = std::min(nearest, room.sums[c] / static_cast<double>(sizes[c]));
    others = true;
  }
  if (sizes[own] == 1 || !others) return 0;
  const double within = room.sums[own] / static_cast<double>(sizes[own] - 1);
  const double larger = std::max(within, nearest);
  return larger > 0 ? (nearest - within) / larger : 0;
}

/// Of rows [first, last): their silhouettes in every labeling.
void score_block(const Context& ctx, const NeighborGraph& graph, std::span<const Labeling> labelings,
                 std::int64_t first, std::vector<Room>& rooms, std::vector<SilhouetteScores>& scores) {
  core::parallel_for(ctx, graph.rows, [&](std::int64_t row, int worker) {
    Room& room = rooms[static_cast<std::size_t>(worker)];
    const auto ids = graph.ids_of(row);
    const auto distances = graph.distances_of(row);
    for (std::size_t at = 0; at < ids.size(); ++at) room.distances[static_cast<std::size_t>(ids[at])] = distances[at];
    const auto i = static_cast<std::size_t>(first + row);
    for (std::size_t t = 0; t < labelings.size(); ++t) {
      ctx.check_cancelled();
      scores[t].samples[i] = silhouette_of(labelings[t], scores[t].sizes, i, room);
    }
  });
}

/// The distances of rows [first, last) to all rows.
NeighborGraph search_block(const Context& ctx, const Index& index, std::int64_t first, std::int64_t last,
                           const SilhouetteOptions& options) {
  const TableView& table = index.table();
  try {
    return knn(ctx, index, table.slice(first, last), all_rows_of(table, options));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::bad_data) throw;
    // The index has found every value finite. The search numbers the block's rows from 0.
    throw Error(ErrorCode::bad_data,
                fmt::format("table: a distance of one of the rows {} to {} overflows float64; scale "
                            "the data down",
                            first, last - 1));
  }
}

void average_rows(const Labeling& labeling, SilhouetteScores& scores) {
  double total = 0;
  for (std::size_t i = 0; i < scores.samples.size(); ++i) {
    scores.clusters[static_cast<std::size_t>(labeling.labels[i])] += scores.samples[i];
    total += scores.samples[i];
  }
  std::int64_t with_rows = 0;
  for (std::size_t c = 0; c < scores.clusters.size(); ++c) {
    if (scores.sizes[c] == 0) continue;
    ++with_rows;
    scores.clusters[c] /= static_cast<double>(scores.sizes[c]);
  }
  if (with_rows > 1) scores.mean = total / static_cast<double>(scores.samples.size());
}

std::vector<SilhouetteScores> score(const Context& ctx, const TableView& table, std::span<const Labeling> labelings,
                                    const SilhouetteOptions& options) {
  if (labelings.empty()) refuse("labelings: there are none");
  const std::int64_t n = table.rows();
  std::int64_t clusters = 0;
  for (std::size_t t = 0; t < labelings.size(); ++t) {
    check_clusters(ctx, labelings[t], n, t);
    clusters = std::max(clusters, labelings[t].clusters);
  }
  core::require_memory(ctx,
                       silhouette_bytes(ctx, table, static_cast<std::int64_t>(labelings.size()), clusters, options),
                       "silhouette_scores");
  std::vector<SilhouetteScores> scores(labelings.size());
  for (std::size_t t = 0; t < labelings.size(); ++t) {
    scores[t].samples.resize(static_cast<std::size_t>(n));
    scores[t].clusters.resize(static_cast<std::size_t>(labelings[t].clusters));
    scores[t].sizes.resize(static_cast<std::size_t>(labelings[t].clusters));
    for (const std::int32_t label : labelings[t].labels) ++scores[t].sizes[static_cast<std::size_t>(label)];
  }
  const Index index(ctx, table, {.packed = Packing::never});
  std::vector<Room> rooms(static_cast<std::size_t>(ctx.threads()));
  for (Room& room : rooms) {
    room.distances.resize(static_cast<std::size_t>(n));
    room.sums.resize(static_cast<std::size_t>(clusters));
  }
  const std::int64_t step = block_rows(n);
  for (std::int64_t first = 0; first < n; first += step) {
    ctx.report("silhouettes", static_cast<double>(first) / static_cast<double>(n));
    const NeighborGraph graph = search_block(ctx, index, first, std::min(first + step, n), options);
    score_block(ctx, graph, labelings, first, rooms, scores);
  }
  for (std::size_t t = 0; t < labelings.size(); ++t) average_rows(labelings[t], scores[t]);
  return scores;
}

}  // namespace

std::uint64_t silhouette_bytes(const Context& ctx, const TableView& table, std::int64_t labelings,
                               std::int64_t clusters, const SilhouetteOptions& options) try {
  const core::Entry entry;
  check_silhouette(ctx, table, options);
  if (labelings < 1 || labelings > kMaxLabels) {
    refuse(fmt::format("labelings: is {}, must be from 1 to 2^31 - 1", labelings));
  }
  if (clusters < 1 || clusters > kMaxLabels) {
    refuse(fmt::format("clusters: is {}, must be from 1 to 2^31 - 1", clusters));
  }
  const TableView block = table.slice(0, block_rows(table.rows()));
  const auto n = static_cast<std::uint64_t>(table.rows());
  const auto k = static_cast<std::uint64_t>(clusters);
  // Terms that do not fit 64 bits are beyond any limit.
  __extension__ using Wide = unsigned __int128;
  const Wide results = static_cast<Wide>(labelings) * (n + 2 * k) * 8;
  if (results > std::numeric_limits<std::uint64_t>::max() / 2) return std::numeric_limits<std::uint64_t>::max();
  return plan_knn(ctx, table, &block, all_rows_of(table, options)).memory + static_cast<std::uint64_t>(results) +
         static_cast<std::uint64_t>(ctx.threads()) * (n + k) * 8;
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

std::vector<SilhouetteScores> silhouette_scores(const Context& ctx, const TableView& table,
                                                std::span<const Labeling> labelings,
                                                const SilhouetteOptions& options) try {
  const core::Entry entry;
  check_silhouette(ctx, table, options);
  return score(ctx, table, labelings, options);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

SilhouetteScores silhouette_scores(const Context& ctx, const TableView& table, const Labeling& labeling,
                                   const SilhouetteOptions& options) try {
  const core::Entry entry;
  check_silhouette(ctx, table, options);
  return std::move(score(ctx, table, {&labeling, 1}, options).front());
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

}  // namespace vicinal
