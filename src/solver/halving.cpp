// See halving.hpp.
#include "solver/halving.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "formulas/lle/part_rule.hpp"

namespace vicinal::solver {
namespace {

constexpr std::int64_t kWideKeys = 4;  // values of keys a cell, beyond which they are sorted rather than counted
constexpr std::ptrdiff_t kPolledPoints = 1 << 20;  // points between two looks at the cancel token

}  // namespace

Halving::Halving(const Context& ctx, const CellGraphs& graphs)
    : ctx_(ctx), graphs_(graphs), layers_(graphs.levels.size()) {
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    layers_[l].graph = &graphs.levels[l];
    layers_[l].place.assign(static_cast<std::size_t>(graphs.levels[l].cells()), -1);
    layers_[l].looked_at.assign(layers_[l].place.size(), 0);
  }
}

std::uint64_t Halving::bytes(std::int64_t cells, int workers) {
  // A worker's notes of every cell, and what is kept of a part's; parts of a time share no points, so that all of them
  // have hardly more cells together than there are. Vectors grow to twice what they hold.
  constexpr std::uint64_t kNoted = sizeof(Point) + sizeof(std::uint8_t);
  constexpr std::uint64_t kOfPart = 2 * (5 * sizeof(Point) + sizeof(Side) + sizeof(std::uint8_t));
  constexpr std::uint64_t kOfSearches = 2 * (10 * sizeof(std::int32_t) + kWideKeys * sizeof(std::int64_t));
  return static_cast<std::uint64_t>(cells) * (static_cast<std::uint64_t>(workers) * kNoted + kOfPart + kOfSearches);
}

void Halving::take_points(const Point* begin, const Point* end) {
  Layer& layer = layers_[0];
  for (const Point cell : layer.cells) layer.place[cell] = -1;
  layer.cells.clear();
  layer.weights.clear();
  for (const Point* v = begin; v != end; ++v) {
    if ((v - begin) % kPolledPoints == 0) ctx_.check_cancelled();
    const Point cell = graphs_.cell_of[*v];
    if (layer.place[cell] < 0) {
      layer.place[cell] = static_cast<Point>(layer.cells.size());
      layer.cells.push_back(cell);
      layer.weights.push_back(0);
    }
    ++layer.weights[layer.place[cell]];
  }
}

void Halving::take_cells(const Layer& fine, Layer& coarse) {
  for (const Point cell : coarse.cells) coarse.place[cell] = -1;
  coarse.cells.clear();
  coarse.weights.clear();
  for (std::size_t i = 0; i < fine.cells.size(); ++i) {
    const Point cell = fine.graph->above[fine.cells[i]];
    if (coarse.place[cell] < 0) {
      coarse.place[cell] = static_cast<Point>(coarse.cells.size());
      coarse.cells.push_back(cell);
      coarse.weights.push_back(0);
    }
    coarse.weights[coarse.place[cell]] += fine.weights[i];
  }
}

void Halving::take_neighbors(const Layer& layer) {
  const Lists& lists = layer.graph->neighbors;
  first_.assign(1, 0);
  neighbors_.clear();
  for (const Point cell : layer.cells) {
    for (const Point* other = lists.begin(cell); other != lists.end(cell); ++other) {
      if (layer.place[*other] >= 0) neighbors_.push_back(layer.place[*other]);
    }
    first_.push_back(static_cast<Point>(neighbors_.size()));
  }
}

// Hops from the cell at `start`; what is not reached is taken up as farther than all else. Returns the farthest one, of
// several the first.
Point Halving::search(Point start, std::vector<std::int32_t>& hops) {
  const std::size_t cells = first_.size() - 1;
  hops.assign(cells, -1);
  queue_.clear();
  std::int32_t base = 0;
  for (std::size_t next = 0; queue_.size() < cells; ++next) {
    const Point from = queue_.empty() ? start : static_cast<Point>(next - 1);
    if (hops[from] >= 0) continue;
    hops[from] = base;
    std::size_t at = queue_.size();
    queue_.push_back(from);
    for (; at < queue_.size(); ++at) {
      const Point cell = queue_[at];
      for (Point e = first_[cell]; e < first_[cell + 1]; ++e) {
        const Point other = neighbors_[e];
        if (hops[other] >= 0) continue;
        hops[other] = hops[cell] + 1;
        queue_.push_back(other);
      }
    }
    base = hops[queue_.back()] + 1;
  }
  Point farthest = queue_.back();
  for (std::size_t i = queue_.size(); i-- > 0 && hops[queue_[i]] == hops[farthest];) {
    farthest = std::min(farthest, queue_[i]);
  }
  return farthest;
}

// Keys become means of each cell and its neighbors, which straightens the line between the halves.
void Halving::smooth(std::vector<std::int32_t>& keys) {
  means_.resize(keys.size());
  for (int sweep = 0; sweep < kMoveSweeps; ++sweep) {
    for (std::size_t i = 0; i < keys.size(); ++i) {
      std::int64_t sum = keys[i];
      for (Point e = first_[i]; e < first_[i + 1]; ++e) sum += keys[neighbors_[e]];
      means_[i] = static_cast<std::int32_t>(sum / (first_[i + 1] - first_[i] + 1));
    }
    keys.swap(means_);
  }
}

// The key of the middle: cells of lesser ones have `taken` points, less than half of all, and those at it the rest of
// that half. Where cells are apart from each other their keys are, too, by far more than there are cells.
std::int32_t Halving::find_middle(const Layer& layer, std::int64_t points, std::int64_t& taken) {
  taken = 0;
  const auto [least, most] = std::minmax_element(keys_.begin(), keys_.end());
  const std::int32_t from = *least;
  if (std::int64_t{*most} - from > kWideKeys * std::ssize(keys_)) {
    queue_.resize(keys_.size());
    std::iota(queue_.begin(), queue_.end(), 0);
    std::sort(queue_.begin(), queue_.end(), [&](Point a, Point b) { return keys_[a] < keys_[b]; });
    for (std::size_t i = 0;;) {
      const std::int32_t key = keys_[queue_[i]];
      std::int64_t at_key = 0;
      for (; i < queue_.size() && keys_[queue_[i]] == key; ++i) at_key += layer.weights[queue_[i]];
      if (2 * (taken + at_key) >= points || i == queue_.size()) return key;
      taken += at_key;
    }
  }
  at_key_.assign(static_cast<std::size_t>(*most - from) + 1, 0);
  for (std::size_t i = 0; i < keys_.size(); ++i) at_key_[keys_[i] - from] += layer.weights[i];
  std::int32_t middle = from;
  while (2 * (taken + at_key_[middle - from]) < points) taken += at_key_[middle++ - from];
  return middle;
}

// The cells `near_` get sides by `keys_`; all cells lean by these, less the key of the middle.
void Halving::halve_by_keys(Layer& layer, std::int64_t points) {
  std::int64_t taken = 0;
  const std::int32_t middle = find_middle(layer, points, taken);  // of cells at it the first ones are left
  for (const Point i : near_) {
    const bool left = keys_[i] < middle || (keys_[i] == middle && 2 * taken < points);
    if (keys_[i] == middle && left) taken += layer.weights[i];
    layer.side[i] = left ? Side::left : Side::right;
  }
  for (std::int32_t& key : keys_) key -= middle;
  layer.lean.swap(keys_);
}

Side Halving::side_of_point(Point point, const Point* begin, const Point* end) const {
  const Layer& layer = layers_[0];
  std::int64_t sum = 0;
  for (const Point* v = begin; v != end; ++v) {
    const Point place = layer.place[graphs_.cell_of[*v]];
    if (place >= 0) sum += layer.lean[place];
  }
  if (sum == 0) return side(graphs_.cell_of[point]);
  return sum < 0 ? Side::left : Side::right;
}

std::int64_t Halving::edges_cut(const Layer& layer) {
  const Lists& lists = layer.graph->neighbors;
  std::int64_t count = 0;
  for (const Point i : layer.cut) {
    if (layer.side[i] != Side::left) continue;
    for (const Point* other = lists.begin(layer.cells[i]); other != lists.end(layer.cells[i]); ++other) {
      const Point place = layer.place[*other];
      count += place >= 0 && layer.side[place] != Side::left ? 1 : 0;
    }
  }
  return count;
}

// A block's points lie in the cell of its own point and in that one's neighbors, be they of the part or not: it may
// join the halves where cells of both are among these. Looked for around the places `near_`.
void Halving::find_cut(Layer& layer) {
  const Lists& lists = layer.graph->neighbors;
  layer.at_cut.assign(layer.cells.size(), 0);
  layer.cut.clear();
  const auto for_each_near = [&](Point cell, const auto& body) {
    body(cell);
    for (const Point* other = lists.begin(cell); other != lists.end(cell); ++other) body(*other);
  };
  const auto look_at = [&](Point cell) {
    if (layer.looked_at[cell] != 0) return;
    layer.looked_at[cell] = 1;
    bool left = false;
    bool right = false;
    for_each_near(cell, [&](Point other) {
      if (layer.place[other] >= 0) (layer.side[layer.place[other]] == Side::left ? left : right) = true;
    });
    if (!left || !right) return;
    for_each_near(cell, [&](Point other) {
      const Point place = layer.place[other];
      if (place < 0 || layer.at_cut[place] != 0) return;
      layer.at_cut[place] = 1;
      layer.cut.push_back(place);
    });
  };
  for (const Point place : near_) for_each_near(layer.cells[place], look_at);
  for (const Point place : near_) for_each_near(layer.cells[place], [&](Point cell) { layer.looked_at[cell] = 0; });
}

// Two corners a and b far from each other, and two more, c and d, far from both: halving between a and b would cut a
// square along its other diagonal, between {a, c} and {b, d} it is cut across. The cheapest of the three is taken.
void Halving::search_ways(const Layer& layer) {
  take_neighbors(layer);
  const Point a = search(search(0, hops_[0]), hops_[0]);
  const Point b = search(a, hops_[0]);
  search(b, hops_[1]);
  const auto nearer = [&](Point cell) { return std::min(hops_[0][cell], hops_[1][cell]); };
  Point c = a;
  for (Point i = 0; i < static_cast<Point>(layer.cells.size()); ++i) {
    if (nearer(i) > nearer(c)) c = i;
  }
  const Point d = search(c, hops_[2]);
  search(d, hops_[3]);
  for (int way = 0; way < kHalvingWays; ++way) {
    std::vector<std::int32_t>& keys = ways_[way];
    keys.resize(layer.cells.size());
    for (std::size_t i = 0; i < keys.size(); ++i) {
      std::int32_t from[4];
      for (int corner = 0; corner < 4; ++corner) from[corner] = std::min(hops_[corner][i], kMaxHops);
      keys[i] = kKeySteps * (way == 0   ? from[0] - from[1]
                             : way == 1 ? std::min(from[0], from[2]) - std::min(from[1], from[3])
                                        : std::min(from[0], from[3]) - std::min(from[1], from[2]));
    }
    smooth(keys);
  }
}

// Halves by a way's keys on layer `top`, and then on each finer one down to `last`; returns how many neighbors are
// parted there.
std::int64_t Halving::take_way(int way, std::size_t top, std::size_t last, std::int64_t points) {
  ctx_.check_cancelled();
  keys_ = ways_[way];
  near_.resize(keys_.size());
  std::iota(near_.begin(), near_.end(), 0);
  layers_[top].side.resize(keys_.size());
  halve_by_keys(layers_[top], points);
  find_cut(layers_[top]);
  for (std::size_t l = top; l-- > last;) {
    refine(layers_[l + 1], layers_[l]);
    halve_by_keys(layers_[l], points);
    find_cut(layers_[l]);
  }
  return edges_cut(layers_[last]);
}

// Every cell leans as the coarse cell that it is part of, but those along the cut as they and their neighbors do.
// Sides change nowhere else. So the finer cut is within reach of these cells: around a block that joins the halves
// either a side was changed, or the coarse cells of its points have different sides, and are at the coarse cut.
void Halving::refine(const Layer& coarse, Layer& fine) {
  const Lists& lists = fine.graph->neighbors;
  keys_.resize(fine.cells.size());
  fine.side.resize(fine.cells.size());
  near_.clear();
  for (std::size_t i = 0; i < fine.cells.size(); ++i) {
    const Point above = coarse.place[fine.graph->above[fine.cells[i]]];
    keys_[i] = coarse.lean[above];
    fine.side[i] = coarse.side[above];
    if (coarse.at_cut[above] != 0) near_.push_back(static_cast<Point>(i));
  }
  means_.resize(near_.size());
  for (int sweep = 0; sweep < kMoveSweeps; ++sweep) {
    for (std::size_t i = 0; i < near_.size(); ++i) {
      const Point cell = fine.cells[near_[i]];
      std::int64_t sum = keys_[near_[i]];
      std::int32_t count = 1;
      for (const Point* other = lists.begin(cell); other != lists.end(cell); ++other) {
        if (fine.place[*other] < 0) continue;
        sum += keys_[fine.place[*other]];
        ++count;
      }
      means_[i] = static_cast<std::int32_t>(sum / count);
    }
    for (std::size_t i = 0; i < near_.size(); ++i) keys_[near_[i]] = means_[i];
  }
}

void Halving::halve(const Point* begin, const Point* end) {
  take_points(begin, end);
  std::size_t top = 0;
  for (; top + 1 < layers_.size() && static_cast<Point>(layers_[top].cells.size()) > kManyCells; ++top) {
    take_cells(layers_[top], layers_[top + 1]);
  }
  search_ways(layers_[top]);
  const std::size_t judged = top > 1 ? 1 : 0;  // a layer that is fine enough to tell which way is best
  int best = 0;
  std::int64_t fewest = std::numeric_limits<std::int64_t>::max();
  for (int way = 0; way < kHalvingWays; ++way) {
    const std::int64_t edges = take_way(way, top, judged, end - begin);
    if (edges >= fewest) continue;
    fewest = edges;
    best = way;
  }
  if (best + 1 < kHalvingWays || judged > 0) take_way(best, top, 0, end - begin);
}

}  // namespace vicinal::solver
