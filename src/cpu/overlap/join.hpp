// The overlap join on the CPU (geo/join.hpp).
#pragma once

#include "backend/overlap.hpp"
#include "geo/join.hpp"

namespace vicinal::cpu {

class CpuJoins final : public kernels::OverlapBackend {
 public:
  [[nodiscard]] Overlaps join(const Context& ctx, const geo::Layer& a, const geo::Layer& b,
                              const OverlapOptions& options) const override {
    return geo::join(ctx, a, b, options);
  }
};

}  // namespace vicinal::cpu
