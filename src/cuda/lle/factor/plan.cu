// See plan.hpp. Host code alone.
#include <algorithm>
#include <numeric>

#include "cuda/lle/factor/plan.hpp"

namespace vicinal::cuda::lle {
namespace {

// Multiplications of a launch, about: milliseconds on a device that is made for float64, and a tenth of a second where
// it goes at a 64th of float32's speed, so that a cancel is seen in time.
constexpr double kLaunchWork = 3e10;

std::int32_t tiles_of(std::int64_t count) {
  return static_cast<std::int32_t>((count + kFrontTile - 1) / kFrontTile);
}

/// Levels from the deepest on; parents come after their children in a tree's nodes.
std::vector<std::int32_t> levels_of(const plugin::LleTree& tree) {
  std::vector<std::int32_t> depth(static_cast<std::size_t>(tree.count), 0);
  std::int32_t deepest = 0;
  for (std::int64_t t = tree.count - 1; t >= 0; --t) {
    if (tree.nodes[t].parent >= 0) depth[t] = depth[tree.nodes[t].parent] + 1;
    deepest = std::max(deepest, depth[t]);
  }
  for (std::int32_t& d : depth) d = deepest - d;
  return depth;
}

std::int64_t own_of(const plugin::LleNode& node) {
  return std::int64_t{node.end} - node.begin;
}

class Planner {
 public:
  explicit Planner(const plugin::LleTree& tree) : tree_(tree) {}

  FrontPlan run() {
    place_fronts();
    for (std::size_t l = 0; l < plan_.levels.size(); ++l) {
      if (l > 0) take_children(plan_.levels[l - 1], plan_.levels[l]);
      tile_panels(plan_.levels[l]);
      tile_squares(plan_.levels[l]);
      std::int64_t& arena = plan_.arena_size[l % 2];
      arena = std::max(arena, plan_.levels[l].squares_size);
    }
    return std::move(plan_);
  }

 private:
  void place_fronts() {
    const std::vector<std::int32_t> level = levels_of(tree_);
    std::vector<std::int32_t> order(static_cast<std::size_t>(tree_.count));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
      if (level[a] != level[b]) return level[a] < level[b];
      return own_of(tree_.nodes[a]) > own_of(tree_.nodes[b]);
    });
    std::vector<std::int32_t> front_of(order.size());
    for (std::size_t i = 0; i < order.size(); ++i) front_of[order[i]] = static_cast<std::int32_t>(i);
    for (const std::int32_t t : order) {
      const plugin::LleNode& node = tree_.nodes[t];
      if (static_cast<std::size_t>(level[t]) == plan_.levels.size()) {
        plan_.levels.emplace_back().first = static_cast<std::int32_t>(plan_.fronts.size());
      }
      FrontLevel& at = plan_.levels.back();
      Front f;
      f.begin = node.begin;
      f.own = node.end - node.begin;
      f.below = static_cast<std::int32_t>(tree_.first_row[t + 1] - tree_.first_row[t]);
      f.parent = node.parent < 0 ? -1 : front_of[node.parent];
      f.panel = plan_.panel_size;
      f.square = at.squares_size;
      f.rows = tree_.first_row[t];
      f.vectors = plan_.vector_rows;
      plan_.panel_size += f.own * f.height();
      plan_.vector_rows += f.height();
      at.squares_size += std::int64_t{f.below} * f.below;
      plan_.fronts.push_back(f);
      at.last = static_cast<std::int32_t>(plan_.fronts.size());
    }
    plan_.row_count = tree_.first_row[tree_.count];
  }

  // Squares of children, by which child of its parent's they are: no two of a launch meet.
  void take_children(const FrontLevel& from, FrontLevel& to) {
    std::vector<std::int32_t> seen(static_cast<std::size_t>(to.last - to.first), 0);
    std::vector<std::vector<std::int32_t>> turns;
    for (std::int32_t c = from.first; c < from.last; ++c) {
      const Front& f = plan_.fronts[c];
      if (f.parent < 0 || f.below == 0) continue;
      const auto turn = static_cast<std::size_t>(seen[f.parent - to.first]++);
      if (turn == turns.size()) turns.emplace_back();
      turns[turn].push_back(c);
    }
    for (const std::vector<std::int32_t>& turn : turns) {
      to.children.push_back({size(), size()});
      for (const std::int32_t c : turn) add_triangle(c);
      to.children.back().end = size();
    }
  }

  void tile_panels(FrontLevel& level) {
    for (std::int32_t col = 0;; ++col) {
      std::int32_t active = 0;
      const TileRange range{size(), 0};
      for (std::int32_t i = level.first; i < level.last; ++i, ++active) {
        const Front& f = plan_.fronts[i];
        if (f.own <= col * kFrontTile) break;
        const std::int64_t left = f.height() - std::min<std::int64_t>(f.own, (col + 1) * kFrontTile);
        for (std::int32_t row = 0; row <= tiles_of(left); ++row) plan_.tiles.push_back({i, row, col});
      }
      if (active == 0) return;
      level.panels.push_back({range.begin, size()});
      level.active.push_back(active);
    }
  }

  void tile_squares(FrontLevel& level) {
    double work = kLaunchWork;
    for (std::int32_t i = level.first; i < level.last; ++i) {
      const Front& f = plan_.fronts[i];
      if (f.own == 0 || f.below == 0) continue;
      for (std::int32_t row = 0; row < tiles_of(f.below); ++row) {
        if (work >= kLaunchWork) {
          level.squares.push_back({size(), size()});
          work = 0;
        }
        for (std::int32_t col = 0; col <= row; ++col) plan_.tiles.push_back({i, row, col});
        work += static_cast<double>(row + 1) * kFrontTile * kFrontTile * f.own;
        level.squares.back().end = size();
      }
    }
  }

  void add_triangle(std::int32_t front) {
    for (std::int32_t row = 0; row < tiles_of(plan_.fronts[front].below); ++row) {
      for (std::int32_t col = 0; col <= row; ++col) plan_.tiles.push_back({front, row, col});
    }
  }

  [[nodiscard]] std::int64_t size() const { return static_cast<std::int64_t>(plan_.tiles.size()); }

  const plugin::LleTree& tree_;
  FrontPlan plan_;
};

}  // namespace

std::uint64_t FrontPlan::held_bytes(std::int64_t points) const {
  return static_cast<std::uint64_t>(panel_size + points) * sizeof(double) +
         static_cast<std::uint64_t>(2 * row_count + points) * sizeof(std::int32_t) + fronts.size() * sizeof(Front) +
         tiles.size() * sizeof(FrontTile);
}
std::uint64_t FrontPlan::factor_bytes() const {
  return static_cast<std::uint64_t>(arena_size[0] + arena_size[1]) * sizeof(double);
}
std::uint64_t FrontPlan::solve_bytes(std::int64_t width) const {
  return static_cast<std::uint64_t>(vector_rows * width) * sizeof(double);
}

FrontPlan plan_fronts(const plugin::LleTree& tree) {
  return Planner(tree).run();
}

}  // namespace vicinal::cuda::lle
