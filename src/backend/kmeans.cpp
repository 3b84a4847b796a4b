// See kmeans.hpp.
#include "backend/kmeans.hpp"

namespace vicinal::kernels {

LloydStep Lloyd::step(bool wait) {
  LloydStep step = assign();
  if (wait && step.empty > 0) return step;
  step.shift = means();
  step.moved = true;
  return step;
}

}  // namespace vicinal::kernels
