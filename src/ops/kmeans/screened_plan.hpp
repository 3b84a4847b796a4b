// A plan of k-means, and which of its bytes are for screens that the job can do without.
#pragma once

#include <cstdint>

#include "backend/kmeans.hpp"
#include "vicinal/context.hpp"
#include "vicinal/graph.hpp"

namespace vicinal::ops {

/// A plan whose memory has that of screens, where it fits.
struct ScreenedPlan {
  Plan plan;
  kernels::ScreenBytes screens;

  /// Adds those of the screens that fit into the memory limit; plan.screens then begins with the one that labels rows.
  void add_screens(const Context& ctx, const kernels::ScreenBytes& wanted);
  /// Adds bytes that the values need, for which screens are given up where they do not fit beside them.
  void add_memory(const Context& ctx, std::uint64_t bytes);
};

}  // namespace vicinal::ops
