// See screened_plan.hpp.
#include "ops/kmeans/screened_plan.hpp"

#include <utility>

namespace vicinal::ops {

void ScreenedPlan::add_screens(const Context& ctx, const kernels::ScreenBytes& wanted) {
  if (plan.memory + wanted.draws <= ctx.memory_limit()) screens.draws = wanted.draws;
  if (plan.memory + screens.draws + wanted.labels <= ctx.memory_limit()) screens.labels = wanted.labels;
  plan.memory += screens.all();
}

void ScreenedPlan::add_memory(const Context& ctx, std::uint64_t bytes) {
  plan.memory += bytes;
  if (plan.memory > ctx.memory_limit()) plan.memory -= std::exchange(screens, {}).all();
}

}  // namespace vicinal::ops
