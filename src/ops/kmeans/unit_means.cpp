// See unit_means.hpp.
#include "ops/kmeans/unit_means.hpp"

#include <algorithm>
#include <vector>

#include "core/distance.hpp"

namespace vicinal::ops {

double unit_means(kernels::Lloyd& lloyd, std::int64_t k, std::int64_t d) {
  std::vector<double> before(static_cast<std::size_t>(k * d));
  std::vector<double> after(before.size());
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(k));
  lloyd.centres(before);
  lloyd.means();
  lloyd.centres(after);
  lloyd.sizes(sizes);
  double shift = 0;
  for (std::int64_t c = 0; c < k; ++c) {
    const double* const from = before.data() + c * d;
    double* const to = after.data() + c * d;
    if (sizes[static_cast<std::size_t>(c)] == 0 || !core::normalize_row(to, d, to)) std::copy_n(from, d, to);
    shift += core::euclidean_key(from, to, d);
  }
  lloyd.recentre(after);
  return shift;
}

}  // namespace vicinal::ops
