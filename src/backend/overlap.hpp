// The waist for maps: what a backend does with two layers of polygons (contract clause 18). Found by `joins_of`, as
// kernels::backend_of finds the rest.
#pragma once

#include "geo/layer.hpp"
#include "vicinal/context.hpp"
#include "vicinal/polygons.hpp"

namespace vicinal::kernels {

class Joins {
 public:
  Joins() = default;
  Joins(const Joins&) = delete;
  Joins& operator=(const Joins&) = delete;
  virtual ~Joins() = default;

  /// Every pair of `a` and `b` that shares a point, by (a, b). Throws `over_memory` before they are made.
  [[nodiscard]] virtual Overlaps join(const Context& ctx, const geo::Layer& a, const geo::Layer& b,
                                      const OverlapOptions& options) const = 0;
};

/// Those of the context's backend; of one that has none, the CPU's.
const Joins& joins_of(const Context& ctx);

}  // namespace vicinal::kernels
