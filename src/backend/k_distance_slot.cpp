// The place of a sequence of k-distances in an index.
#include "backend/nearest.hpp"

namespace vicinal::kernels {

std::shared_ptr<const KDistances> KDistanceSlot::get() const {
  const std::scoped_lock lock(mutex_);
  return distances_;
}

std::shared_ptr<const KDistances> KDistanceSlot::get_or_make(Metric metric, double p, std::int64_t k,
                                                             const std::function<std::vector<double>()>& make) const {
  auto distances = get();
  if (distances && distances->metric == metric && distances->p == p && distances->k == k) return distances;
  distances = std::make_shared<const KDistances>(KDistances{metric, p, k, make()});
  const std::scoped_lock lock(mutex_);
  distances_ = distances;
  return distances;
}

}  // namespace vicinal::kernels
