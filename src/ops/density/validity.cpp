// Density-based validity of clusters (contract clause 21): core distances and spanning tree of one cluster after the
// other, then the distances between inner rows of different clusters. Every pair's distance is computed when it is
// needed.
#include "vicinal/validity.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "core/entry.hpp"
#include "core/exact_sum.hpp"
#include "core/infinity.hpp"
#include "core/memory.hpp"
#include "core/poll.hpp"
#include "core/table_access.hpp"
#include "ops/common/check.hpp"
#include "ops/common/refuse.hpp"
#include "ops/density/placed_rows.hpp"
#include "ops/density/search.hpp"
#include "ops/density/validity_tree.hpp"

namespace vicinal {
namespace {

const char* const kValidity = "validity";
constexpr std::int64_t kReportedPlaces = 4096;  // between two reports of progress

void check_rows(const Context& ctx, const TableView& table) {
  ops::for_ranges(ctx, 0, table.rows(), table.cols(), [&](std::int64_t first, std::int64_t last, int) {
    std::vector<double> row(static_cast<std::size_t>(table.cols()));
    for (std::int64_t at = first; at < last; ++at) {
      core::widen_rows(table, at, at + 1, row.data());
      for (std::size_t column = 0; column < row.size(); ++column) {
        if (std::isfinite(row[column])) continue;
        throw Error(ErrorCode::bad_data, "table: row " + std::to_string(at) + ", column " + std::to_string(column) +
                                             " is " + (std::isnan(row[column]) ? "NaN" : "infinite") +
                                             ", must be finite");
      }
    }
  });
}

std::int64_t clusters_of(const Context& ctx, const TableView& table, std::span<const std::int64_t> labels) {
  const std::int64_t n = table.rows();
  if (std::ssize(labels) != n) {
    refuse("labels: there are " + std::to_string(labels.size()) + " of them, but the table has " + std::to_string(n) +
           " rows");
  }
  core::Poll poll(ctx);
  std::int64_t largest = -1;
  for (std::size_t row = 0; row < labels.size(); ++row) {
    poll.step();
    if (labels[row] < -1 || labels[row] >= n) {
      refuse("labels: row " + std::to_string(row) + " has label " + std::to_string(labels[row]) +
             ", must be from 0 to " + std::to_string(n - 1) + ", or -1 for noise");
    }
    largest = std::max(largest, labels[row]);
  }
  return largest + 1;
}

class Rating {
 public:
  Rating(const Context& ctx, const TableView& table, std::span<const std::int64_t> labels, std::int64_t clusters,
         const ValidityOptions& options)
      : ctx_(ctx), n_(table.rows()), rows_(ctx, table, placed(labels, clusters), options.metric, options.p) {}

  Validity run() {
    rate_within();
    rate_between();
    core::ExactSum sum;
    std::int64_t rated = 0;
    for (std::size_t cluster = 0; cluster < found_.clusters.size(); ++cluster) {
      if (found_.sizes[cluster] < 2) continue;
      ++rated;
      const double within = found_.sparseness[cluster];
      const double between = found_.separations[cluster];
      if (std::isinf(within) || std::isinf(between)) continue;
      const double larger = std::max(within, between);
      const double rating = larger > 0 ? (between - within) / larger : 0;
      found_.clusters[cluster] = rating;
      sum.add(static_cast<double>(found_.sizes[cluster]) * rating);
    }
    if (rated > 1) found_.index = sum.rounded() / static_cast<double>(n_);
    return std::move(found_);
  }

 private:
  /// The rows of clusters of two rows or more, cluster by cluster.
  std::vector<std::int64_t> placed(std::span<const std::int64_t> labels, std::int64_t clusters) {
    core::Poll poll(ctx_);
    const auto count = static_cast<std::size_t>(clusters);
    found_.sizes.assign(count, 0);
    for (std::vector<double>* values : {&found_.clusters, &found_.sparseness}) values->assign(count, 0);
    found_.separations.assign(count, kInfinity);
    for (const std::int64_t label : labels) {
      poll.step();
      if (label >= 0) ++found_.sizes[static_cast<std::size_t>(label)];
    }
    offsets_.assign(count + 1, 0);
    for (std::size_t cluster = 0; cluster < count; ++cluster) {
      const std::int64_t size = found_.sizes[cluster];
      offsets_[cluster + 1] = offsets_[cluster] + (size > 1 ? size : 0);
    }
    std::vector<std::int64_t> next(offsets_.begin(), offsets_.end() - 1);
    std::vector<std::int64_t> rows(static_cast<std::size_t>(offsets_.back()));
    for (std::size_t row = 0; row < labels.size(); ++row) {
      poll.step();
      if (labels[row] < 0 || found_.sizes[static_cast<std::size_t>(labels[row])] < 2) continue;
      rows[static_cast<std::size_t>(next[static_cast<std::size_t>(labels[row])]++)] = static_cast<std::int64_t>(row);
    }
    return rows;
  }

  [[nodiscard]] ops::ClusterPlaces places_of(std::size_t cluster) const {
    return {offsets_[cluster], offsets_[cluster + 1]};
  }

  void rate_within() {
    const auto count = static_cast<std::size_t>(rows_.count());
    std::int64_t most = 0;
    for (std::size_t cluster = 0; cluster + 1 < offsets_.size(); ++cluster) {
      most = std::max(most, offsets_[cluster + 1] - offsets_[cluster]);
    }
    cores_.assign(count, 0);
    is_inner_.assign(count, 0);
    std::vector<std::vector<double>> rooms(static_cast<std::size_t>(ctx_.threads()));
    for (std::vector<double>& room : rooms) room.resize(static_cast<std::size_t>(most));
    ops::InnerTree tree(ctx_, rows_, cores_, most);
    for (std::size_t cluster = 0; cluster + 1 < offsets_.size(); ++cluster) {
      const ops::ClusterPlaces places = places_of(cluster);
      if (places.begin == places.end) continue;
      ctx_.report(kValidity, 0.6 * static_cast<double>(places.begin) / static_cast<double>(count));
      ops::find_core_distances(ctx_, rows_, places, rooms, cores_);
      found_.sparseness[cluster] = tree.find(places, is_inner_);
    }
  }

  void rate_between() {
    const auto count = static_cast<std::size_t>(rows_.count());
    nearest_.assign(count, kInfinity);
    for (std::int64_t begin = 0; begin < rows_.count(); begin += kReportedPlaces) {
      ctx_.report(kValidity, 0.6 + 0.4 * static_cast<double>(begin) / static_cast<double>(count));
      ops::for_ranges(ctx_, begin, std::min(begin + kReportedPlaces, rows_.count()), rows_.cols() * rows_.count(),
                      [&](std::int64_t first, std::int64_t last, int) {
                        auto end = std::upper_bound(offsets_.begin(), offsets_.end(), first);
                        for (std::int64_t place = first; place < last; ++place) {
                          ctx_.check_cancelled();
                          while (place >= *end) ++end;
                          nearest_[static_cast<std::size_t>(place)] = nearest_outside(place, {*(end - 1), *end});
                        }
                      });
    }
    for (std::size_t cluster = 0; cluster + 1 < offsets_.size(); ++cluster) {
      const ops::ClusterPlaces places = places_of(cluster);
      if (places.begin == places.end) continue;
      found_.separations[cluster] = *std::min_element(nearest_.begin() + places.begin, nearest_.begin() + places.end);
    }
    ctx_.report(kValidity, 1);
  }

  /// How far an inner place is from the inner places of other clusters.
  [[nodiscard]] double nearest_outside(std::int64_t place, const ops::ClusterPlaces& own) const {
    double nearest = kInfinity;
    if (is_inner_[static_cast<std::size_t>(place)] == 0) return nearest;
    const double core = cores_[static_cast<std::size_t>(place)];
    std::int64_t pairs = 0;
    const auto look = [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t other = first; other < last; ++other) {
        if (++pairs % rows_.polled_pairs() == 0) ctx_.check_cancelled();
        const auto at = static_cast<std::size_t>(other);
        const double least = std::max(core, cores_[at]);
        if (is_inner_[at] == 0 || least >= nearest) continue;
        nearest = std::min(nearest, std::max(least, rows_.distance(place, other)));
      }
    };
    look(0, own.begin);
    look(own.end, rows_.count());
    return nearest;
  }

  const Context& ctx_;
  std::int64_t n_;
  Validity found_;
  std::vector<std::int64_t> offsets_;  // [clusters + 1] places of each
  ops::PlacedRows rows_;
  std::vector<double> cores_;           // [places]
  std::vector<std::uint8_t> is_inner_;  // [places]
  std::vector<double> nearest_;         // [places] distance of an inner place to those of other clusters
};

}  // namespace

Validity validity(const Context& ctx, const TableView& table, std::span<const std::int64_t> labels,
                  const ValidityOptions& options) try {
  const core::Entry entry;
  if (table.rows() < 1 || table.cols() < 1) refuse("table: is empty");
  ops::check_density_search(table, options.metric, options.p, Method::automatic, kValidity);
  if (options.metric == Metric::inner_product) {
    refuse("metric: inner_product may be below 0, which has no density; validity takes all others");
  }
  if (table.memory() == Memory::cuda) refuse("table: validity needs it in host memory, but it is in device memory");
  core::require_memory(ctx, validity_bytes(ctx, table), kValidity);
  const std::int64_t clusters = clusters_of(ctx, table, labels);
  check_rows(ctx, table);
  return Rating(ctx, table, labels, clusters, options).run();
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

std::uint64_t validity_bytes(const Context& ctx, const TableView& table) try {
  const core::Entry entry;
  const auto n = static_cast<std::uint64_t>(table.rows());
  const auto d = static_cast<std::uint64_t>(table.cols());
  // Values; of a place its row, zero, core, inner, nearest, edge, placed and degree; of a cluster what is found of it.
  constexpr std::uint64_t kOfPlace = 8 + 1 + 8 + 1 + 8 + 24 + 1 + 8 + 8;
  constexpr std::uint64_t kOfCluster = std::uint64_t{6} * 8;
  return n * (d * sizeof(double) + kOfPlace + kOfCluster) +
         static_cast<std::uint64_t>(ctx.threads()) * (n + d) * sizeof(double);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

}  // namespace vicinal
