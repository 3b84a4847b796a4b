// The backend of a context with several CUDA devices. Searches, votes, k-means and outlier scores are divided among
// them (divided_nearest.hpp, divided_kmeans.hpp, divided_lof.hpp); all else runs on the first one.
#pragma once

#include <memory>

#include "backend/backend.hpp"
#include "plugin/cuda/crew.hpp"

namespace vicinal::plugin {

std::shared_ptr<const kernels::Backend> make_divided_backend(const std::shared_ptr<Crew>& crew);

}  // namespace vicinal::plugin
