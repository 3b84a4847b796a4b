// See merged_means.hpp.
#include "ops/kmeans/merged_means.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

#include "core/distance.hpp"
#include "core/parallel.hpp"

namespace vicinal::ops {

double merged_means(const Context& ctx, const kernels::SumGrid& grid, std::span<std::int64_t> parts,
                    std::span<double> centres) {
  const auto size = static_cast<std::size_t>(grid.cluster_size());
  const auto d = static_cast<std::size_t>(grid.cols());
  std::vector<double> shifts(parts.size() / size, 0);
  const std::int64_t tasks = std::min<std::int64_t>(std::ssize(shifts), ctx.threads());
  core::parallel_for(ctx, tasks, [&](std::int64_t task, int /*worker*/) {
    std::vector<double> mean(d);
    for (auto c = static_cast<std::size_t>(task); c < shifts.size(); c += static_cast<std::size_t>(tasks)) {
      const std::span<std::int64_t> cluster = parts.subspan(c * size, size);
      if (cluster[0] == 0) continue;
      kernels::mean_of(grid, cluster, mean);
      double* const centre = centres.data() + c * d;
      shifts[c] = core::euclidean_key(centre, mean.data(), grid.cols());
      std::copy(mean.begin(), mean.end(), centre);
    }
  });
  return std::accumulate(shifts.begin(), shifts.end(), 0.0);
}

}  // namespace vicinal::ops
