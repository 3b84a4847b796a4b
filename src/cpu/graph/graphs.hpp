// The ways of the CPU to label the members of a bipartite graph (contract clause 16).
#pragma once

#include "backend/graph.hpp"

namespace vicinal::cpu {

/// Bytes of `label_components` beside its result.
std::uint64_t component_bytes(const kernels::GraphTask& task);
void label_components(const Context& ctx, const kernels::GraphTask& task, kernels::GraphLabels& labels);

/// Bytes of `label_by_bits`: the matrix and its square, a bit an element.
std::uint64_t closure_bytes(const kernels::GraphTask& task);
void label_by_bits(const Context& ctx, const kernels::GraphTask& task, kernels::GraphLabels& labels);

/// The paper's products (papers/closure_product.cpp): two matrices of integers.
std::uint64_t product_bytes(const kernels::GraphTask& task);
void label_by_products(const Context& ctx, const kernels::GraphTask& task, kernels::GraphLabels& labels);

class CpuGraphs final : public kernels::GraphBackend {
 public:
  [[nodiscard]] kernels::MemoryNeed bytes(const Context& ctx, const kernels::GraphTask& task) const override;
  void label(const Context& ctx, const kernels::GraphTask& task, kernels::GraphLabels& labels) const override;
};

}  // namespace vicinal::cpu
