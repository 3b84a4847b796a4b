// See screened_plan.hpp.
#include "ops/kmeans/screened_plan.hpp"

#include <string_view>
#include <utility>

namespace vicinal::ops {
namespace {

constexpr std::string_view kLabels = "int8, ";  // the screen of labels, before the others in the plan

}  // namespace

void ScreenedPlan::add_screens(const Context& ctx, const kernels::ScreenBytes& wanted) {
  if (plan.memory + wanted.draws <= ctx.memory_limit()) screens.draws = wanted.draws;
  if (plan.memory + screens.draws + wanted.labels <= ctx.memory_limit()) screens.labels = wanted.labels;
  plan.memory += screens.all();
  if (screens.labels > 0) plan.screens.insert(0, kLabels);
}

void ScreenedPlan::add_memory(const Context& ctx, std::uint64_t bytes) {
  plan.memory += bytes;
  if (plan.memory <= ctx.memory_limit()) return;
  if (screens.labels > 0) plan.screens.erase(0, kLabels.size());
  plan.memory -= std::exchange(screens, {}).all();
}

}  // namespace vicinal::ops
