// OPTICS from contract clause 30: the next row is looked for among all, and clusters among all pairs of areas.
#include <algorithm>
#include <cmath>

#include "reference/density.hpp"

namespace vicinal::reference {

namespace {

struct Area {
  std::size_t start;
  std::size_t end;
  bool rises;
};

// The steep areas of a plot, which ends with infinity, from the left to the right.
std::vector<Area> steep_areas(const std::vector<double>& plot, double xi, std::int64_t min_samples) {
  enum class Step { steep_fall, fall, level, rise, steep_rise };
  std::vector<Step> steps;
  for (std::size_t i = 0; i + 1 < plot.size(); ++i) {
    const double ratio = plot[i] / plot[i + 1];
    Step step = Step::level;
    if (ratio > 1) step = Step::fall;
    if (ratio < 1) step = Step::rise;
    if (ratio <= 1 - xi) step = Step::steep_rise;
    if (ratio >= 1 / (1 - xi)) step = Step::steep_fall;
    steps.push_back(step);
  }
  const auto is_steep = [](Step step) { return step == Step::steep_fall || step == Step::steep_rise; };
  std::vector<Area> areas;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (!is_steep(steps[i])) continue;
    Area area{i, i, steps[i] == Step::steep_rise};
    const Step same = steps[i];
    // What goes the other way; with xi = 0 a level place is steep both ways, and falls first.
    const auto is_against = [&](std::size_t at) {
      const double ratio = plot[at] / plot[at + 1];
      return area.rises ? ratio > 1 : ratio < 1;
    };
    const auto is_same = [&](std::size_t at) {
      const double ratio = plot[at] / plot[at + 1];
      return steps[at] == same || (area.rises ? ratio <= 1 - xi : ratio >= 1 / (1 - xi));
    };
    std::int64_t waited = 0;
    for (std::size_t at = i + 1; at < steps.size(); ++at) {
      if (is_same(at)) {
        area.end = at;
        waited = 0;
        continue;
      }
      if (is_against(at)) break;
      if (++waited > min_samples) break;
    }
    areas.push_back(area);
    i = area.end;
  }
  return areas;
}

double largest_of(const std::vector<double>& plot, std::size_t first, std::size_t last) {
  double largest = 0;
  for (std::size_t i = first; i <= last; ++i) largest = std::max(largest, plot[i]);
  return largest;
}

}  // namespace

Optics optics(std::span<const double> keys, const OpticsOptions& options) {
  const auto n = static_cast<std::size_t>(std::llround(std::sqrt(static_cast<double>(keys.size()))));
  const auto distance = [&](double key) { return distance_of(options.metric, options.p, key); };
  Optics found;
  std::vector<double> core(n);
  for (std::size_t i = 0; i < n; ++i) {
    std::vector<double> others;
    for (std::size_t j = 0; j < n; ++j) {
      if (j != i) others.push_back(keys[i * n + j]);
    }
    std::sort(others.begin(), others.end());
    core[i] = others[static_cast<std::size_t>(options.min_samples) - 2];
    found.core_distances.push_back(distance(core[i]) <= options.max_eps ? distance(core[i]) : kInfinite);
  }
  std::vector<double> reach(n, kInfinite);
  std::vector<bool> is_placed(n, false);
  found.predecessors.assign(n, -1);
  for (std::size_t place = 0; place < n; ++place) {
    std::size_t next = n;
    for (std::size_t i = 0; i < n; ++i) {
      if (!is_placed[i] && (next == n || reach[i] < reach[next])) next = i;
    }
    found.ordering.push_back(static_cast<std::int64_t>(next));
    is_placed[next] = true;
    if (std::isinf(found.core_distances[next])) continue;
    for (std::size_t i = 0; i < n; ++i) {
      const double key = std::max(core[next], keys[next * n + i]);
      if (is_placed[i] || !(distance(keys[next * n + i]) <= options.max_eps) || !(key < reach[i])) continue;
      reach[i] = key;
      found.predecessors[i] = static_cast<std::int64_t>(next);
    }
  }
  for (const double key : reach) found.reachability.push_back(std::isinf(key) ? kInfinite : distance(key));
  return found;
}

OpticsClusters optics_dbscan(const Optics& order, double eps) {
  OpticsClusters found;
  found.labels.assign(order.ordering.size(), -1);
  for (const std::int64_t row : order.ordering) {
    const auto i = static_cast<std::size_t>(row);
    if (order.reachability[i] <= eps) {
      found.labels[i] = found.clusters - 1;
    } else if (order.core_distances[i] <= eps) {
      found.labels[i] = found.clusters++;
    }
  }
  return found;
}

OpticsClusters optics_xi(const Optics& order, const OpticsXiOptions& options) {
  const double kept = 1 - options.xi;
  const std::int64_t fewest = options.min_cluster_size == 0 ? order.options.min_samples : options.min_cluster_size;
  std::vector<double> plot;
  for (const std::int64_t row : order.ordering) plot.push_back(order.reachability[static_cast<std::size_t>(row)]);
  plot.push_back(kInfinite);
  OpticsClusters found;
  const std::vector<Area> areas = steep_areas(plot, options.xi, order.options.min_samples);
  for (std::size_t u = 0; u < areas.size(); ++u) {
    if (!areas[u].rises) continue;
    for (std::size_t d = u; d-- > 0;) {
      if (areas[d].rises) continue;
      const double top = plot[areas[d].start];
      const double last = plot[areas[u].end + 1];
      const double between = largest_of(plot, areas[d].end + 1, areas[u].start);
      if (std::isinf(between) || !(between <= top * kept) || last * kept < between) continue;
      std::size_t start = areas[d].start;
      std::size_t end = areas[u].end;
      if (top * kept >= last) {
        while (start < areas[d].end && plot[start + 1] > last) ++start;
      } else if (last * kept >= top) {
        while (end > areas[u].start && plot[end - 1] > top) --end;
      }
      if (options.predecessor_correction) {
        const auto is_reached_within = [&](std::size_t place) {
          const std::int64_t from = order.predecessors[static_cast<std::size_t>(order.ordering[place])];
          const auto begin = order.ordering.begin();
          return std::find(begin + static_cast<std::ptrdiff_t>(start), begin + static_cast<std::ptrdiff_t>(place),
                           from) != begin + static_cast<std::ptrdiff_t>(place);
        };
        while (end > start && !(plot[start] > plot[end]) && !is_reached_within(end)) --end;
        if (end <= start) continue;
      }
      if (start > areas[d].end || end < areas[u].start) continue;
      if (static_cast<std::int64_t>(end - start) + 1 < fewest) continue;
      found.starts.push_back(static_cast<std::int64_t>(start));
      found.ends.push_back(static_cast<std::int64_t>(end));
    }
  }
  std::vector<std::int64_t> of_places(order.ordering.size(), -1);
  for (std::size_t c = 0; c < found.starts.size(); ++c) {
    const auto first = of_places.begin() + found.starts[c];
    const auto last = of_places.begin() + found.ends[c] + 1;
    if (std::any_of(first, last, [](std::int64_t label) { return label >= 0; })) continue;
    std::fill(first, last, found.clusters++);
  }
  found.labels.assign(order.ordering.size(), -1);
  for (std::size_t place = 0; place < of_places.size(); ++place) {
    found.labels[static_cast<std::size_t>(order.ordering[place])] = of_places[place];
  }
  return found;
}

}  // namespace vicinal::reference
