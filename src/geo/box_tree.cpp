// See box_tree.hpp.
#include "geo/box_tree.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
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

constexpr Box kNothing = {kInfinity, kInfinity, -kInfinity, -kInfinity};  // meets nothing

/// The largest float32 that is not above v.
float rounded_down(double v) {
  const auto nearest = static_cast<float>(v);
  return static_cast<double>(nearest) > v ? std::nextafterf(nearest, -std::numeric_limits<float>::infinity()) : nearest;
}

/// Which byte of eight has the lowest bit.
int byte_of(std::uint64_t bytes) {
  const int bit = std::countr_zero(bytes);
  return (std::endian::native == std::endian::little ? bit : 63 - bit) / 8;
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
  std::vector<Box> level;
  level.reserve(keyed.size());
  leaves_.reserve(keyed.size());
  for (const Keyed& one : keyed) {
    level.push_back(boxes[static_cast<std::size_t>(one.id)]);
    leaves_.push_back({level.back(), one.id});
  }
  while (true) {
    std::vector<Node>& nodes = levels_.emplace_back((level.size() + kWidth - 1) / kWidth);
    std::vector<Box> above(nodes.size(), kNothing);
    for (std::size_t i = 0; i < nodes.size() * kWidth; ++i) {
      const Box box = i < level.size() ? level[i] : kNothing;
      Node& node = nodes[i / kWidth];
      node.x0[i % kWidth] = rounded_down(box.x0);
      node.y0[i % kWidth] = rounded_down(box.y0);
      node.x1[i % kWidth] = -rounded_down(-box.x1);
      node.y1[i % kWidth] = -rounded_down(-box.y1);
      Box& whole = above[i / kWidth];
      whole = {std::min(whole.x0, box.x0), std::min(whole.y0, box.y0), std::max(whole.x1, box.x1),
               std::max(whole.y1, box.y1)};
    }
    if (nodes.size() == 1) break;
    level = std::move(above);
  }
}

void BoxTree::search(std::size_t level, std::size_t node, const Wide& wide, const Box& box,
                     std::vector<std::int64_t>& ids) const {
  const Node& here = levels_[level][node];
  alignas(16) std::uint8_t met[kWidth];
  for (std::size_t i = 0; i < kWidth; ++i) {
    met[i] = static_cast<std::uint8_t>((here.x0[i] <= wide.x1) & (wide.x0 <= here.x1[i]) & (here.y0[i] <= wide.y1) &
                                       (wide.y0 <= here.y1[i]));
  }
  for (std::size_t half = 0; half < kWidth; half += 8) {
    std::uint64_t eight = 0;
    std::memcpy(&eight, met + half, sizeof eight);
    for (; eight != 0; eight &= eight - 1) {
      const std::size_t at = node * kWidth + half + static_cast<std::size_t>(byte_of(eight));
      if (at >= (level > 0 ? levels_[level - 1].size() : leaves_.size())) break;  // beyond the last, met by infinity
      if (level > 0) {
        search(level - 1, at, wide, box, ids);
      } else if (meet(leaves_[at].box, box)) {
        ids.push_back(leaves_[at].id);
      }
    }
  }
}

void BoxTree::query(const Box& box, std::vector<std::int64_t>& ids) const {
  if (levels_.empty()) return;
  const Wide wide = {rounded_down(box.x0), rounded_down(box.y0), -rounded_down(-box.x1), -rounded_down(-box.y1)};
  search(levels_.size() - 1, 0, wide, box, ids);
}

std::uint64_t BoxTree::bytes(std::int64_t n) {
  return static_cast<std::uint64_t>(n) *
         (sizeof(Keyed) * 2 + sizeof(Box) * 2 + sizeof(Node) / kWidth * 2 + sizeof(std::int64_t));
}

}  // namespace vicinal::geo
