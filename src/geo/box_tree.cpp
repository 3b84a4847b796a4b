// See box_tree.hpp.
#include "geo/box_tree.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/infinity.hpp"
#include "core/parallel.hpp"

namespace vicinal::geo {
namespace {

double middle_x(const Box& box) {
  return box.x0 + box.x1;
}
double middle_y(const Box& box) {
  return box.y0 + box.y1;
}

struct Keyed {
  double key;
  std::int64_t id;

  friend bool operator<(const Keyed& a, const Keyed& b) { return a.key != b.key ? a.key < b.key : a.id < b.id; }
};

/// Sorts in parallel: parts, then merges of two at a time.
void sort_keyed(const Context& ctx, std::vector<Keyed>& keyed) {
  const auto n = static_cast<std::int64_t>(keyed.size());
  std::int64_t part = std::max<std::int64_t>(1 << 14, (n + 15) / 16);
  core::parallel_for(ctx, (n + part - 1) / part, [&](std::int64_t task, int /*worker*/) {
    std::sort(keyed.begin() + task * part, keyed.begin() + std::min(n, (task + 1) * part));
  });
  for (; part < n; part *= 2) {
    core::parallel_for(ctx, (n + 2 * part - 1) / (2 * part), [&](std::int64_t task, int /*worker*/) {
      const std::int64_t first = task * 2 * part;
      if (first + part >= n) return;
      std::inplace_merge(keyed.begin() + first, keyed.begin() + first + part,
                         keyed.begin() + std::min(n, first + 2 * part));
    });
  }
}

}  // namespace

BoxTree::BoxTree(const Context& ctx, const std::vector<Box>& boxes) {
  std::vector<Keyed> keyed;
  keyed.reserve(boxes.size());
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    if (boxes[i].x0 <= boxes[i].x1) keyed.push_back({middle_x(boxes[i]), static_cast<std::int64_t>(i)});
  }
  const auto n = static_cast<std::int64_t>(keyed.size());
  if (n == 0) return;
  sort_keyed(ctx, keyed);
  // Slabs of whole leaves, as many as leaves in each.
  const std::int64_t leaves = (n + kWidth - 1) / kWidth;
  const auto slabs = static_cast<std::int64_t>(std::ceil(std::sqrt(static_cast<double>(leaves))));
  const std::int64_t slab = (leaves + slabs - 1) / slabs * kWidth;
  core::parallel_for(ctx, (n + slab - 1) / slab, [&](std::int64_t task, int /*worker*/) {
    const auto first = keyed.begin() + task * slab;
    const auto last = keyed.begin() + std::min(n, (task + 1) * slab);
    for (auto it = first; it != last; ++it) it->key = middle_y(boxes[static_cast<std::size_t>(it->id)]);
    std::sort(first, last);
  });
  order_.resize(static_cast<std::size_t>(n));
  levels_.emplace_back().boxes.resize(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < keyed.size(); ++i) {
    order_[i] = keyed[i].id;
    levels_[0].boxes[i] = boxes[static_cast<std::size_t>(keyed[i].id)];
  }
  while (levels_.back().boxes.size() > static_cast<std::size_t>(kWidth)) {
    const std::vector<Box>& below = levels_.back().boxes;
    std::vector<Box> nodes((below.size() + kWidth - 1) / kWidth, {kInfinity, kInfinity, -kInfinity, -kInfinity});
    for (std::size_t i = 0; i < below.size(); ++i) {
      Box& node = nodes[i / kWidth];
      node = {std::min(node.x0, below[i].x0), std::min(node.y0, below[i].y0), std::max(node.x1, below[i].x1),
              std::max(node.y1, below[i].y1)};
    }
    levels_.push_back({std::move(nodes)});
  }
}

void BoxTree::search(std::size_t level, std::int64_t first, std::int64_t last, const Box& box,
                     std::vector<std::int64_t>& ids) const {
  const Box* const boxes = levels_[level].boxes.data() + first;
  std::uint32_t met = 0;
  for (std::int64_t i = 0; i < last - first; ++i) met |= static_cast<std::uint32_t>(meet(boxes[i], box)) << i;
  for (; met != 0; met &= met - 1) {
    const std::int64_t i = first + std::countr_zero(met);
    if (level == 0) {
      ids.push_back(order_[static_cast<std::size_t>(i)]);
    } else {
      const auto below = static_cast<std::int64_t>(levels_[level - 1].boxes.size());
      search(level - 1, i * kWidth, std::min(below, (i + 1) * kWidth), box, ids);
    }
  }
}

void BoxTree::query(const Box& box, std::vector<std::int64_t>& ids) const {
  if (levels_.empty()) return;
  search(levels_.size() - 1, 0, static_cast<std::int64_t>(levels_.back().boxes.size()), box, ids);
}

std::uint64_t BoxTree::bytes(std::int64_t n) {
  return static_cast<std::uint64_t>(n) * (sizeof(Keyed) * 2 + sizeof(Box) * 2 + sizeof(std::int64_t));
}

}  // namespace vicinal::geo
