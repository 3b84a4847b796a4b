// Clusters from an order of OPTICS (contract clause 30). The plot is the reachability in the order of the rows, and one
// place more that nothing reaches. One pass over it: a steep descent opens clusters, a steep ascent closes them.
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/entry.hpp"
#include "core/infinity.hpp"
#include "core/memory.hpp"
#include "core/poll.hpp"
#include "ops/common/refuse.hpp"
#include "vicinal/optics.hpp"

namespace vicinal {
namespace {

/// Throws `invalid_argument` unless the arrays are those of an order.
void check_order(core::Poll& poll, const Optics& order) {
  const std::size_t n = order.ordering.size();
  if (n == 0 || order.reachability.size() != n || order.core_distances.size() != n || order.predecessors.size() != n) {
    refuse("order: " + std::to_string(n) + " places, " + std::to_string(order.reachability.size()) +
           " reachabilities, " + std::to_string(order.core_distances.size()) + " core distances and " +
           std::to_string(order.predecessors.size()) + " predecessors are no order of rows");
  }
  std::vector<std::uint8_t> is_placed(n, 0);
  const auto rows = static_cast<std::int64_t>(n);
  for (std::size_t i = 0; i < n; ++i) {
    poll.step();
    const std::int64_t row = order.ordering[i];
    if (row < 0 || row >= rows || is_placed[static_cast<std::size_t>(row)] != 0) {
      refuse("order: place " + std::to_string(i) + " has row " + std::to_string(row) +
             ", but the places must have each row from 0 to " + std::to_string(rows - 1) + " once");
    }
    is_placed[static_cast<std::size_t>(row)] = 1;
    if (order.predecessors[i] < -1 || order.predecessors[i] >= rows) {
      refuse("order: row " + std::to_string(i) + " has a predecessor that is no row");
    }
    if (!(order.reachability[i] >= 0) || !(order.core_distances[i] >= 0)) {
      refuse("order: the distances of row " + std::to_string(i) + " must be at least 0");
    }
  }
}

/// Bytes of the checks, the plot, descents, and the labels; clusters come on top of them.
std::uint64_t extraction_bytes(const Optics& order) {
  return order.ordering.size() * 16 * sizeof(double);
}

void summarize(core::Poll& poll, OpticsClusters& found) {
  found.sizes.assign(static_cast<std::size_t>(found.clusters), 0);
  for (const std::int64_t label : found.labels) {
    poll.step();
    label < 0 ? ++found.noise : ++found.sizes[static_cast<std::size_t>(label)];
  }
}

/// A run of places, both ends included.
struct Area {
  std::int64_t start = 0;
  std::int64_t end = 0;
};
/// A steep descent, and the largest reachability between its end and the place that was reached.
struct Descent {
  Area area;
  double between = 0;
};

class XiClusters {
 public:
  XiClusters(const Context& ctx, core::Poll& poll, const Optics& order, const OpticsXiOptions& options,
             std::uint64_t bytes)
      : ctx_(ctx),
        poll_(poll),
        options_(options),
        patience_(order.options.min_samples),
        fewest_(options.min_cluster_size != 0 ? options.min_cluster_size : order.options.min_samples),
        kept_(1 - options.xi),
        n_(std::ssize(order.ordering)),
        bytes_(bytes) {
    std::vector<std::int64_t> places(order.ordering.size());
    for (std::size_t place = 0; place < places.size(); ++place) {
      poll_.step();
      const auto row = static_cast<std::size_t>(order.ordering[place]);
      places[row] = static_cast<std::int64_t>(place);
      plot_.push_back(order.reachability[row]);
    }
    plot_.push_back(kInfinity);
    for (const std::int64_t row : order.ordering) {
      poll_.step();
      const std::int64_t from = order.predecessors[static_cast<std::size_t>(row)];
      from_.push_back(from < 0 ? -1 : places[static_cast<std::size_t>(from)]);
    }
  }

  void find(OpticsClusters& found) {
    double between = 0;  // the largest reachability since the last area
    for (std::int64_t place = 0; place < n_;) {
      poll_.step();
      between = std::max(between, plot(place));
      if (is_steep(place, false)) {
        keep_descents(between);
        const Area area = steep_area(place, false);
        descents_.push_back({area, 0});
        place = area.end + 1;
        between = plot(place);
      } else if (is_steep(place, true)) {
        keep_descents(between);
        const Area area = steep_area(place, true);
        close(area, found);
        place = area.end + 1;
        between = plot(place);
      } else {
        ++place;
      }
    }
  }

 private:
  [[nodiscard]] double plot(std::int64_t place) const { return plot_[static_cast<std::size_t>(place)]; }
  /// How many times as high a place is as the next one; no number where both are 0 or infinite.
  [[nodiscard]] double ratio(std::int64_t place) const { return plot(place) / plot(place + 1); }
  [[nodiscard]] bool is_steep(std::int64_t place, bool upward) const {
    return upward ? ratio(place) <= kept_ : ratio(place) >= 1 / kept_;
  }
  [[nodiscard]] bool goes(std::int64_t place, bool upward) const {
    return upward ? ratio(place) < 1 : ratio(place) > 1;
  }

  /// From a steep place to the last one that is steep in the same direction, before the first that goes the other way
  /// or the (patience + 1)-th in a row that goes this way without being steep.
  [[nodiscard]] Area steep_area(std::int64_t start, bool upward) {
    Area area{start, start};
    std::int64_t flat = 0;
    for (std::int64_t place = start; place < n_; ++place) {
      poll_.step();
      if (is_steep(place, upward)) {
        flat = 0;
        area.end = place;
      } else if (goes(place, !upward) || ++flat > patience_) {
        break;
      }
    }
    return area;
  }

  /// Forgets descents that are no higher than what came after them.
  void keep_descents(double between) {
    if (std::isinf(between)) return descents_.clear();
    std::erase_if(descents_, [&](const Descent& down) {
      poll_.step();
      return !(between <= plot(down.area.start) * kept_);
    });
    for (Descent& down : descents_) {
      poll_.step();
      down.between = std::max(down.between, between);
    }
  }

  /// Adds the clusters from each descent to an ascent, those that begin last first.
  void close(const Area& up, OpticsClusters& found) {
    for (std::size_t i = descents_.size(); i-- > 0;) {
      poll_.step();
      const auto cluster = cluster_between(descents_[i], up);
      if (!cluster) continue;
      if (found.starts.size() == found.starts.capacity()) make_room(found);
      found.starts.push_back(cluster->start);
      found.ends.push_back(cluster->end);
    }
  }
  void make_room(OpticsClusters& found) {
    const std::size_t more = std::max<std::size_t>(64, found.starts.size());
    bytes_ += more * 2 * 2 * sizeof(std::int64_t);  // old and new stand side by side while they move
    core::require_memory(ctx_, bytes_, "optics: the clusters found so far");
    found.starts.reserve(found.starts.size() + more);
    found.ends.reserve(found.starts.size() + more);
  }

  [[nodiscard]] std::optional<Area> cluster_between(const Descent& down, const Area& up) {
    Area cluster{down.area.start, up.end};
    const double top = plot(down.area.start);
    const double end = plot(up.end + 1);
    if (end * kept_ < down.between) return std::nullopt;
    if (top * kept_ >= end) {  // the descent begins higher: the cluster begins where it is as low as the end
      for (; plot(cluster.start + 1) > end && cluster.start < down.area.end; ++cluster.start) poll_.step();
    } else if (end * kept_ >= top) {  // the ascent ends higher: the cluster ends where it is as low as the top
      for (; plot(cluster.end - 1) > top && cluster.end > up.start; --cluster.end) poll_.step();
    }
    if (options_.predecessor_correction && !end_within(cluster)) return std::nullopt;
    if (cluster.end - cluster.start + 1 < fewest_) return std::nullopt;
    if (cluster.start > down.area.end || cluster.end < up.start) return std::nullopt;
    return cluster;
  }
  /// Moves the end to a row that is reached from within the cluster, or that is below its start; false where there is
  /// none.
  [[nodiscard]] bool end_within(Area& cluster) {
    for (; cluster.start < cluster.end; --cluster.end) {
      poll_.step();
      if (plot(cluster.start) > plot(cluster.end)) return true;
      const std::int64_t from = from_[static_cast<std::size_t>(cluster.end)];
      if (from >= cluster.start && from < cluster.end) return true;
    }
    return false;
  }

  const Context& ctx_;
  core::Poll& poll_;
  const OpticsXiOptions& options_;
  std::int64_t patience_;
  std::int64_t fewest_;
  double kept_;  // 1 - xi
  std::int64_t n_;
  std::uint64_t bytes_;
  std::vector<double> plot_;        // [n + 1]
  std::vector<std::int64_t> from_;  // [n] the place of each place's predecessor, or -1
  std::vector<Descent> descents_;
};

/// Labels the places of each cluster in which no place has a label yet.
void label_smallest(core::Poll& poll, const Optics& order, OpticsClusters& found) {
  std::map<std::int64_t, std::int64_t> labeled;  // ends of clusters with labels, by their starts
  found.labels.assign(order.ordering.size(), -1);
  for (std::size_t cluster = 0; cluster < found.starts.size(); ++cluster) {
    poll.step();
    const std::int64_t start = found.starts[cluster];
    const std::int64_t end = found.ends[cluster];
    const auto after = labeled.upper_bound(end);
    if (after != labeled.begin() && std::prev(after)->second >= start) continue;
    labeled.emplace(start, end);
    for (std::int64_t place = start; place <= end; ++place) {
      poll.step();
      found.labels[static_cast<std::size_t>(order.ordering[static_cast<std::size_t>(place)])] = found.clusters;
    }
    ++found.clusters;
  }
}

}  // namespace

OpticsClusters optics_xi(const Context& ctx, const Optics& order, const OpticsXiOptions& options) try {
  const core::Entry entry;
  core::Poll poll(ctx);
  if (!(options.xi >= 0 && options.xi < 1)) refuse("xi: must be at least 0 and below 1");
  core::require_memory(ctx, extraction_bytes(order), "optics");
  check_order(poll, order);
  const std::int64_t n = std::ssize(order.ordering);
  if (options.min_cluster_size != 0 && (options.min_cluster_size < 2 || options.min_cluster_size > n)) {
    refuse("min_cluster_size: is " + std::to_string(options.min_cluster_size) +
           ", must be from 2 to the number of rows, " + std::to_string(n) + ", or 0 for min_samples");
  }
  OpticsClusters found;
  XiClusters(ctx, poll, order, options, extraction_bytes(order)).find(found);
  label_smallest(poll, order, found);
  summarize(poll, found);
  return found;
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

OpticsClusters optics_dbscan(const Context& ctx, const Optics& order, double eps) try {
  const core::Entry entry;
  core::Poll poll(ctx);
  if (!(eps >= 0)) refuse("eps: must be at least 0");
  if (eps > order.options.max_eps) {
    refuse("eps: is above max_eps of the order; order the rows with a larger max_eps");
  }
  core::require_memory(ctx, extraction_bytes(order), "optics");
  check_order(poll, order);
  OpticsClusters found;
  found.labels.assign(order.ordering.size(), -1);
  for (const std::int64_t row : order.ordering) {
    poll.step();
    const auto at = static_cast<std::size_t>(row);
    const bool is_far = order.reachability[at] > eps;
    const bool is_core = order.core_distances[at] <= eps;
    if (is_far && is_core) ++found.clusters;
    if (!is_far || is_core) found.labels[at] = found.clusters - 1;
  }
  summarize(poll, found);
  return found;
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

}  // namespace vicinal
