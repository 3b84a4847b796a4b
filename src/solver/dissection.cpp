// Nested dissection, level by level. See ordering.hpp.
//
// A part is a list of points. Its cells make a small graph, on which a breadth-first search from one end and one from
// the other tell how far each cell is from both; halving by the difference cuts across the longest way. Points within
// kBandHops of the cut are the band; the minimum vertex cut of the band is the separator, and what the cut leaves on
// either side are the two parts of the next level.
#include <algorithm>
#include <limits>
#include <memory>

#include "core/parallel.hpp"
#include "solver/ordering.hpp"
#include "solver/separator.hpp"

namespace vicinal::solver {
namespace {

constexpr std::size_t kLeafPoints = 64;  // below, what fill is left does not pay for another separator
constexpr int kBandHops = 3;             // on each side of the cut
constexpr double kBandShare = 0.4;       // of a part, at most

/// Cells within which every point can be reached: a few that hold points of two sheets of a folded surface would make
/// both look near everywhere.
Cells connected(const Pattern& points, const std::vector<Point>& cells) {
  Cells found;
  found.order.reserve(points.first.size() - 1);
  found.first = {0};
  std::vector<char> taken(points.first.size() - 1, 0);
  for (std::size_t cell = 0; cell + 1 < cells.size(); ++cell) {
    for (Point start = cells[cell]; start < cells[cell + 1]; ++start) {
      if (taken[start] != 0) continue;
      taken[start] = 1;
      found.order.push_back(start);
      for (auto at = static_cast<std::size_t>(found.first.back()); at < found.order.size(); ++at) {
        const Point v = found.order[at];
        for (std::int64_t e = points.first[v]; e < points.first[v + 1]; ++e) {
          const Point w = points.neighbors[e];
          if (w < cells[cell] || w >= cells[cell + 1] || taken[w] != 0) continue;
          taken[w] = 1;
          found.order.push_back(w);
        }
      }
      found.first.push_back(static_cast<Point>(found.order.size()));
    }
  }
  return found;
}

/// The cells' graph: which cells hold points that are neighbors.
Pattern graph_of_cells(const Context& ctx, const Pattern& points, const Cells& cells,
                       const std::vector<Point>& cell_of) {
  const auto count = static_cast<std::int64_t>(cells.first.size()) - 1;
  constexpr std::int64_t kTaskCells = 256;
  const std::int64_t tasks = (count + kTaskCells - 1) / kTaskCells;
  std::vector<std::vector<Point>> parts(static_cast<std::size_t>(tasks));
  Pattern graph;
  graph.first.assign(static_cast<std::size_t>(count) + 1, 0);
  core::parallel_for(ctx, tasks, [&](std::int64_t task, int /*worker*/) {
    std::vector<Point> found;
    for (std::int64_t cell = task * kTaskCells; cell < std::min(count, (task + 1) * kTaskCells); ++cell) {
      found.clear();
      for (Point i = cells.first[cell]; i < cells.first[cell + 1]; ++i) {
        const Point v = cells.order[i];
        for (std::int64_t e = points.first[v]; e < points.first[v + 1]; ++e) {
          const Point other = cell_of[points.neighbors[e]];
          if (other != cell && (found.empty() || found.back() != other)) found.push_back(other);
        }
      }
      std::sort(found.begin(), found.end());
      found.erase(std::unique(found.begin(), found.end()), found.end());
      graph.first[cell + 1] = static_cast<std::int64_t>(found.size());
      parts[task].insert(parts[task].end(), found.begin(), found.end());
    }
  });
  for (std::int64_t i = 0; i < count; ++i) graph.first[i + 1] += graph.first[i];
  for (const std::vector<Point>& part : parts) {
    graph.neighbors.insert(graph.neighbors.end(), part.begin(), part.end());
  }
  return graph;
}

/// A node of the tree while it grows.
struct Part {
  std::vector<Point> points;  // ascending; then its separator, or all of a leaf
  std::int32_t children[2] = {-1, -1};
  std::int32_t parent = -1;
};

/// What one worker halves parts with.
class Splitter {
 public:
  Splitter(const Pattern& points, const Pattern& cells, const std::vector<Point>& cell_of,
           const std::vector<std::int32_t>& owner)
      : points_(points),
        cells_(cells),
        cell_of_(cell_of),
        owner_(owner),
        cell_place_(cells.first.size(), -1),
        place_(cell_of.size(), -1) {}

  /// Left, right and separator of part `id`; false where it should stay in one piece.
  bool split(const std::vector<Point>& part, std::int32_t id, std::vector<Point> (&out)[3]) {
    if (part.size() <= kLeafPoints) return false;
    take_cells(part);
    halve(part.size());
    const bool good = cut(part, id, out);
    for (const Point cell : present_) cell_place_[cell] = -1;
    return good;
  }

 private:
  void take_cells(const std::vector<Point>& part) {
    present_.clear();
    weights_.clear();
    for (const Point v : part) {
      const Point cell = cell_of_[v];
      if (cell_place_[cell] < 0) {
        cell_place_[cell] = static_cast<Point>(present_.size());
        present_.push_back(cell);
        weights_.push_back(0);
      }
      ++weights_[cell_place_[cell]];
    }
  }

  // Hops from the cell at `start`; what is not reached is taken up as farther than all else. Returns the last one.
  Point search(Point start, std::vector<std::int32_t>& hops) {
    hops.assign(present_.size(), -1);
    queue_.clear();
    std::int32_t base = 0;
    for (std::size_t next = 0; queue_.size() < present_.size(); ++next) {
      const Point from = queue_.empty() ? start : static_cast<Point>(next - 1);
      if (hops[from] >= 0) continue;
      hops[from] = base;
      std::size_t at = queue_.size();
      queue_.push_back(from);
      for (; at < queue_.size(); ++at) {
        const Point cell = present_[queue_[at]];
        for (std::int64_t e = cells_.first[cell]; e < cells_.first[cell + 1]; ++e) {
          const Point other = cell_place_[cells_.neighbors[e]];
          if (other < 0 || hops[other] >= 0) continue;
          hops[other] = hops[queue_[at]] + 1;
          queue_.push_back(other);
        }
      }
      base = hops[queue_.back()] + 1;
    }
    return queue_.back();
  }

  // Two corners a and b far from each other, and two more, c and d, far from both: halving between a and b would cut a
  // square along its other diagonal, between {a, c} and {b, d} it is cut across. The cheapest of the three is taken.
  void halve(std::size_t points) {
    const Point a = search(search(0, hops_[0]), hops_[0]);
    const Point b = search(a, hops_[0]);
    search(b, hops_[1]);
    Point c = a;
    for (std::size_t i = 0; i < present_.size(); ++i) {
      const auto nearer = [&](std::size_t cell) { return std::min(hops_[0][cell], hops_[1][cell]); };
      if (nearer(i) > nearer(static_cast<std::size_t>(c))) c = static_cast<Point>(i);
    }
    const Point d = search(c, hops_[2]);
    search(d, hops_[3]);
    cell_side_.assign(present_.size(), Side::right);
    std::int64_t fewest = std::numeric_limits<std::int64_t>::max();
    for (int way = 0; way < 3; ++way) {
      keys_.resize(present_.size());
      for (std::size_t i = 0; i < keys_.size(); ++i) {
        const std::int32_t from[] = {hops_[0][i], hops_[1][i], hops_[2][i], hops_[3][i]};
        keys_[i] = way == 0   ? from[0] - from[1]
                   : way == 1 ? std::min(from[0], from[2]) - std::min(from[1], from[3])
                              : std::min(from[0], from[3]) - std::min(from[1], from[2]);
      }
      halve_by_keys(points);
      const std::int64_t edges = edges_cut();
      if (edges >= fewest) continue;
      fewest = edges;
      cell_side_.swap(trial_);
    }
  }

  void halve_by_keys(std::size_t points) {
    by_place_.resize(present_.size());
    for (std::size_t i = 0; i < by_place_.size(); ++i) by_place_[i] = static_cast<Point>(i);
    std::sort(by_place_.begin(), by_place_.end(),
              [&](Point x, Point y) { return keys_[x] < keys_[y] || (keys_[x] == keys_[y] && x < y); });
    trial_.assign(present_.size(), Side::right);
    std::size_t taken = 0;
    for (const Point cell : by_place_) {
      if (2 * taken >= points) break;
      trial_[cell] = Side::left;
      taken += static_cast<std::size_t>(weights_[cell]);
    }
  }

  [[nodiscard]] std::int64_t edges_cut() const {
    std::int64_t count = 0;
    for (std::size_t i = 0; i < present_.size(); ++i) {
      if (trial_[i] != Side::left) continue;
      for (std::int64_t e = cells_.first[present_[i]]; e < cells_.first[present_[i] + 1]; ++e) {
        const Point other = cell_place_[cells_.neighbors[e]];
        if (other >= 0 && trial_[other] == Side::right) count += std::min(weights_[i], weights_[other]);
      }
    }
    return count;
  }

  [[nodiscard]] Side half_of(Point v) const { return cell_side_[cell_place_[cell_of_[v]]]; }

  // Points of the band, from the cut outwards; `layer` says where each hop begins.
  void find_band(const std::vector<Point>& part, std::int32_t id, std::vector<std::size_t>& layer) {
    band_points_.clear();
    const auto add = [&](Point v) {
      place_[v] = static_cast<Point>(band_points_.size());
      band_points_.push_back(v);
    };
    layer.assign(1, 0);
    for (const Point v : part) {
      const Side side = half_of(v);
      for (std::int64_t e = points_.first[v]; e < points_.first[v + 1]; ++e) {
        const Point w = points_.neighbors[e];
        if (owner_[w] != id || half_of(w) == side) continue;
        add(v);
        break;
      }
    }
    layer.push_back(band_points_.size());
    for (int hop = 0; hop < kBandHops; ++hop) {
      const double most = kBandShare * static_cast<double>(part.size());
      for (std::size_t i = layer[layer.size() - 2]; i < layer.back(); ++i) {
        const Point v = band_points_[i];
        for (std::int64_t e = points_.first[v]; e < points_.first[v + 1]; ++e) {
          const Point w = points_.neighbors[e];
          if (owner_[w] == id && place_[w] < 0) add(w);
        }
      }
      if (static_cast<double>(band_points_.size()) > most) {
        while (band_points_.size() > layer.back()) {
          place_[band_points_.back()] = -1;
          band_points_.pop_back();
        }
        break;
      }
      layer.push_back(band_points_.size());
    }
  }

  bool cut(const std::vector<Point>& part, std::int32_t id, std::vector<Point> (&out)[3]) {
    std::vector<std::size_t> layer;
    find_band(part, id, layer);
    const std::size_t edge = layer[layer.size() - 2];  // the outermost layer begins here
    Band band;
    band.first.assign(1, 0);
    for (std::size_t i = 0; i < band_points_.size(); ++i) {
      const Point v = band_points_[i];
      bool outside = i >= edge;
      for (std::int64_t e = points_.first[v]; e < points_.first[v + 1]; ++e) {
        const Point w = points_.neighbors[e];
        if (owner_[w] != id) continue;
        if (place_[w] >= 0) {
          band.neighbors.push_back(place_[w]);
        } else {
          outside = true;
        }
      }
      band.first.push_back(static_cast<std::int64_t>(band.neighbors.size()));
      band.at_left.push_back(outside && half_of(v) == Side::left ? 1 : 0);
      band.at_right.push_back(outside && half_of(v) == Side::right ? 1 : 0);
    }
    const std::vector<Side> sides = separate(band);
    for (std::vector<Point>& list : out) list.clear();
    for (const Point v : part) {
      const Side side = place_[v] >= 0 ? sides[place_[v]] : half_of(v);
      out[side == Side::left ? 0 : side == Side::right ? 1 : 2].push_back(v);
    }
    for (const Point v : band_points_) place_[v] = -1;
    return !out[0].empty() && !out[1].empty() && 2 * out[2].size() < part.size();
  }

  const Pattern& points_;
  const Pattern& cells_;
  const std::vector<Point>& cell_of_;
  const std::vector<std::int32_t>& owner_;
  std::vector<Point> cell_place_;  // of each cell in `present_`, -1 if it is not of the part
  std::vector<Point> place_;       // of each point in the band, -1 outside
  std::vector<Point> present_;
  std::vector<Point> weights_;
  std::vector<Point> queue_;
  std::vector<Point> by_place_;
  std::vector<Point> band_points_;
  std::vector<std::int32_t> hops_[4];  // from four corners
  std::vector<std::int32_t> keys_;
  std::vector<Side> trial_;
  std::vector<Side> cell_side_;
};

/// Numbers the tree's nodes, children first; a separator without points is no node.
class Numbering {
 public:
  Numbering(const std::vector<Part>& parts, Dissection& to) : parts_(parts), to_(to) {}

  void run() {
    // A stack instead of calls: a part is seen before its children and after them.
    std::vector<std::pair<std::int32_t, bool>> stack = {{0, false}};
    std::vector<std::vector<std::int32_t>> waiting(parts_.size());  // nodes without a parent yet, by part
    while (!stack.empty()) {
      const auto [id, seen] = stack.back();
      const Part& part = parts_[id];
      if (!seen && part.children[0] >= 0) {
        stack.back().second = true;
        stack.emplace_back(part.children[1], false);
        stack.emplace_back(part.children[0], false);
        continue;
      }
      stack.pop_back();
      std::vector<std::int32_t> roots;
      for (const std::int32_t child : part.children) {
        if (child >= 0) roots.insert(roots.end(), waiting[child].begin(), waiting[child].end());
      }
      if (!part.points.empty()) {
        const auto node = static_cast<std::int32_t>(to_.nodes.size());
        for (const std::int32_t root : roots) to_.nodes[root].parent = node;
        const auto begin = static_cast<Point>(to_.order.size());
        to_.order.insert(to_.order.end(), part.points.begin(), part.points.end());
        to_.nodes.push_back({begin, static_cast<Point>(to_.order.size()), -1});
        roots.assign(1, node);
      }
      waiting[id] = std::move(roots);
    }
  }

 private:
  const std::vector<Part>& parts_;
  Dissection& to_;
};

}  // namespace

Dissection dissect(const Context& ctx, const Pattern& pattern, const std::vector<Point>& near) {
  const Cells cells = connected(pattern, near);
  const auto n = static_cast<Point>(pattern.first.size() - 1);
  std::vector<Point> cell_of(static_cast<std::size_t>(n));
  for (std::size_t cell = 0; cell + 1 < cells.first.size(); ++cell) {
    for (Point i = cells.first[cell]; i < cells.first[cell + 1]; ++i)
      cell_of[cells.order[i]] = static_cast<Point>(cell);
  }
  const Pattern graph = graph_of_cells(ctx, pattern, cells, cell_of);
  std::vector<std::int32_t> owner(static_cast<std::size_t>(n), 0);  // the part of each point; -1: of a separator
  std::vector<std::unique_ptr<Splitter>> splitters(static_cast<std::size_t>(ctx.threads()));
  std::vector<Part> parts(1);
  parts[0].points.resize(static_cast<std::size_t>(n));
  for (Point i = 0; i < n; ++i) parts[0].points[i] = i;

  for (std::size_t begin = 0; begin < parts.size();) {
    const std::size_t end = parts.size();
    struct Pieces {
      bool split = false;
      std::vector<Point> lists[3];
    };
    std::vector<Pieces> pieces(end - begin);
    core::parallel_for(ctx, static_cast<std::int64_t>(end - begin), [&](std::int64_t task, int worker) {
      if (!splitters[worker]) splitters[worker] = std::make_unique<Splitter>(pattern, graph, cell_of, owner);
      const auto id = static_cast<std::int32_t>(begin + static_cast<std::size_t>(task));
      pieces[task].split = splitters[worker]->split(parts[id].points, id, pieces[task].lists);
    });
    for (std::size_t i = begin; i < end; ++i) {
      Pieces& of = pieces[i - begin];
      if (!of.split) {
        for (const Point v : parts[i].points) owner[v] = -1;
        continue;
      }
      for (const Point v : of.lists[2]) owner[v] = -1;
      for (int side = 0; side < 2; ++side) {
        const auto id = static_cast<std::int32_t>(parts.size());
        for (const Point v : of.lists[side]) owner[v] = id;
        parts[i].children[side] = id;
        Part& child = parts.emplace_back();
        child.points = std::move(of.lists[side]);
        child.parent = static_cast<std::int32_t>(i);
      }
      parts[i].points = std::move(of.lists[2]);
    }
    begin = end;
  }
  Dissection found;
  found.order.reserve(static_cast<std::size_t>(n));
  Numbering(parts, found).run();
  return found;
}

}  // namespace vicinal::solver
