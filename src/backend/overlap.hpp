// Maps: what a backend does with two layers of polygons (contract clause 18).
#pragma once

#include "geo/layer.hpp"
#include "vicinal/context.hpp"
#include "vicinal/polygons.hpp"

namespace vicinal::kernels {

class OverlapBackend {
 public:
  OverlapBackend() = default;
  OverlapBackend(const OverlapBackend&) = delete;
  OverlapBackend& operator=(const OverlapBackend&) = delete;
  virtual ~OverlapBackend() = default;

  /// Every pair of `a` and `b` that shares a point, by (a, b). Throws `over_memory` before they are made.
  [[nodiscard]] virtual Overlaps join(const Context& ctx, const geo::Layer& a, const geo::Layer& b,
                                      const OverlapOptions& options) const = 0;
};

}  // namespace vicinal::kernels
