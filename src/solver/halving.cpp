// See halving.hpp.
#include "solver/halving.hpp"

#include <algorithm>
#include <limits>

namespace vicinal::solver {
namespace {

constexpr std::uint8_t kNearLeft = 1;
constexpr std::uint8_t kNearRight = 2;
constexpr std::int32_t kKeySteps = 32;  // of a hop, so that means of hops are whole numbers, too
constexpr int kSweeps = 3;

}  // namespace

void Halving::take_cells(const Point* begin, const Point* end) {
  for (const Point cell : cells_) place_[cell] = -1;
  cells_.clear();
  weights_.clear();
  for (const Point* v = begin; v != end; ++v) {
    const Point cell = graph_.cell_of[*v];
    if (place_[cell] < 0) {
      place_[cell] = static_cast<Point>(cells_.size());
      cells_.push_back(cell);
      weights_.push_back(0);
    }
    ++weights_[place_[cell]];
  }
}

void Halving::take_neighbors() {
  first_.assign(1, 0);
  neighbors_.clear();
  for (const Point cell : cells_) {
    for (Point e = graph_.first[cell]; e < graph_.first[cell + 1]; ++e) {
      const Point other = place_[graph_.neighbors[e]];
      if (other >= 0) neighbors_.push_back(other);
    }
    first_.push_back(static_cast<Point>(neighbors_.size()));
  }
}

// Hops from the cell at `start`; what is not reached is taken up as farther than all else. Returns the last one.
Point Halving::search(Point start, std::vector<std::int32_t>& hops) {
  ctx_.check_cancelled();
  hops.assign(cells_.size(), -1);
  queue_.clear();
  std::int32_t base = 0;
  for (std::size_t next = 0; queue_.size() < cells_.size(); ++next) {
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
  return queue_.back();
}

// Keys become means of each cell and its neighbors, which straightens the line between the halves.
void Halving::smooth() {
  for (std::int32_t& key : keys_) key *= kKeySteps;
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    means_.resize(keys_.size());
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      std::int64_t sum = keys_[i];
      for (Point e = first_[i]; e < first_[i + 1]; ++e) sum += keys_[neighbors_[e]];
      means_[i] = static_cast<std::int32_t>(sum / (first_[i + 1] - first_[i] + 1));
    }
    keys_.swap(means_);
  }
}

std::int32_t Halving::halve_by_keys(std::int64_t points) {
  const auto [least, most] = std::minmax_element(keys_.begin(), keys_.end());
  const std::int32_t from = *least;
  at_key_.assign(static_cast<std::size_t>(*most - from) + 1, 0);
  for (std::size_t i = 0; i < keys_.size(); ++i) at_key_[keys_[i] - from] += weights_[i];
  std::int64_t taken = 0;
  std::int32_t middle = from;  // cells of lesser keys are left, of those at it the first ones
  while (2 * (taken + at_key_[middle - from]) < points) taken += at_key_[middle++ - from];
  trial_.resize(keys_.size());
  for (std::size_t i = 0; i < keys_.size(); ++i) {
    const bool left = keys_[i] < middle || (keys_[i] == middle && 2 * taken < points);
    if (keys_[i] == middle && left) taken += weights_[i];
    trial_[i] = left ? Side::left : Side::right;
  }
  return middle;
}

Side Halving::side_of_points(const Point* begin, const Point* end) const {
  std::int64_t sum = 0;
  for (const Point* v = begin; v != end; ++v) {
    const Point place = place_[graph_.cell_of[*v]];
    if (place >= 0) sum += lean_[place];
  }
  return sum < 0 ? Side::left : Side::right;
}

std::int64_t Halving::edges_cut() const {
  std::int64_t count = 0;
  for (std::size_t i = 0; i < trial_.size(); ++i) {
    if (trial_[i] != Side::left) continue;
    for (Point e = first_[i]; e < first_[i + 1]; ++e) count += trial_[neighbors_[e]] != Side::left ? 1 : 0;
  }
  return count;
}

// A block's points lie in the cell of its own point and in that one's neighbors, be they of the part or not.
void Halving::find_cut() {
  at_cut_.assign(cells_.size(), 0);
  for (std::size_t i = 0; i < cells_.size(); ++i) {
    const std::uint8_t near = side_[i] == Side::left ? kNearLeft : kNearRight;
    sides_near_[cells_[i]] |= near;
    for (Point e = graph_.first[cells_[i]]; e < graph_.first[cells_[i] + 1]; ++e) {
      sides_near_[graph_.neighbors[e]] |= near;
    }
  }
  const auto both = [&](Point cell) { return sides_near_[cell] == (kNearLeft | kNearRight); };
  for (std::size_t i = 0; i < cells_.size(); ++i) {
    bool found = both(cells_[i]);
    for (Point e = graph_.first[cells_[i]]; e < graph_.first[cells_[i] + 1]; ++e) {
      found = found || both(graph_.neighbors[e]);
    }
    at_cut_[i] = found ? 1 : 0;
  }
  for (const Point cell : cells_) {
    sides_near_[cell] = 0;
    for (Point e = graph_.first[cell]; e < graph_.first[cell + 1]; ++e) sides_near_[graph_.neighbors[e]] = 0;
  }
}

// Two corners a and b far from each other, and two more, c and d, far from both: halving between a and b would cut a
// square along its other diagonal, between {a, c} and {b, d} it is cut across. The cheapest of the three is taken.
void Halving::halve(const Point* begin, const Point* end) {
  take_cells(begin, end);
  take_neighbors();
  const Point a = search(search(0, hops_[0]), hops_[0]);
  const Point b = search(a, hops_[0]);
  search(b, hops_[1]);
  const auto nearer = [&](Point cell) { return std::min(hops_[0][cell], hops_[1][cell]); };
  Point c = a;
  for (Point i = 0; i < static_cast<Point>(cells_.size()); ++i) {
    if (nearer(i) > nearer(c)) c = i;
  }
  const Point d = search(c, hops_[2]);
  search(d, hops_[3]);
  std::int64_t fewest = std::numeric_limits<std::int64_t>::max();
  keys_.resize(cells_.size());
  for (int way = 0; way < 3; ++way) {
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      const std::int32_t from[] = {hops_[0][i], hops_[1][i], hops_[2][i], hops_[3][i]};
      keys_[i] = way == 0   ? from[0] - from[1]
                 : way == 1 ? std::min(from[0], from[2]) - std::min(from[1], from[3])
                            : std::min(from[0], from[3]) - std::min(from[1], from[2]);
    }
    smooth();
    const std::int32_t middle = halve_by_keys(end - begin);
    const std::int64_t edges = edges_cut();
    if (edges >= fewest) continue;
    fewest = edges;
    side_.swap(trial_);
    lean_.resize(keys_.size());
    for (std::size_t i = 0; i < keys_.size(); ++i) lean_[i] = keys_[i] - middle;
  }
  find_cut();
}

}  // namespace vicinal::solver
