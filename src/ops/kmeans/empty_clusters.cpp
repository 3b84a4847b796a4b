// See empty_clusters.hpp. A heap gives the order's beginning: how far it is followed is not known before, as some
// donors may be exhausted.
#include "ops/kmeans/empty_clusters.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

namespace vicinal::ops {

bool fill_empty(kernels::Lloyd& lloyd, std::int64_t n, std::int64_t k, std::span<const std::int32_t> empty) {
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(k));
  std::vector<double> keys(static_cast<std::size_t>(n));
  std::vector<std::int32_t> labels(keys.size());
  lloyd.sizes(sizes);
  lloyd.keys(keys);
  lloyd.labels(labels);
  const auto farther = [&](std::int64_t a, std::int64_t b) {
    const double x = keys[static_cast<std::size_t>(a)];
    const double y = keys[static_cast<std::size_t>(b)];
    return x != y ? x > y : a < b;
  };
  const auto later = [&](std::int64_t a, std::int64_t b) { return farther(b, a); };
  std::vector<std::int64_t> heap(keys.size());
  std::iota(heap.begin(), heap.end(), 0);
  std::make_heap(heap.begin(), heap.end(), later);
  std::size_t filled = 0;
  while (filled < empty.size() && !heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), later);
    const std::int64_t row = heap.back();
    heap.pop_back();
    if (!(keys[static_cast<std::size_t>(row)] > 0)) break;
    std::int64_t& donor = sizes[static_cast<std::size_t>(labels[static_cast<std::size_t>(row)])];
    if (donor == 1) continue;
    --donor;
    lloyd.move(row, empty[filled++]);
  }
  return filled > 0;
}

}  // namespace vicinal::ops
