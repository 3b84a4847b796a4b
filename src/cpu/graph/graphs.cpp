// See graphs.hpp, and what all backends share of graphs.
#include "cpu/graph/graphs.hpp"

#include <string>

namespace vicinal {

namespace cpu {

kernels::MemoryNeed CpuGraphs::bytes(const Context& /*ctx*/, const kernels::GraphTask& task) const {
  switch (task.method) {
    case CoclusterMethod::components:
      return {component_bytes(task), 0};
    case CoclusterMethod::closure:
      return {closure_bytes(task), 0};
    default:
      return {product_bytes(task), 0};
  }
}

void CpuGraphs::label(const Context& ctx, const kernels::GraphTask& task, kernels::GraphLabels& labels) const {
  switch (task.method) {
    case CoclusterMethod::components:
      return label_components(ctx, task, labels);
    case CoclusterMethod::closure:
      return label_by_bits(ctx, task, labels);
    default:
      return label_by_products(ctx, task, labels);
  }
}

}  // namespace cpu

namespace kernels {
namespace {

void require_member(std::int64_t id, std::int64_t size, std::int64_t edge, char side) {
  if (id >= 0 && id < size) return;
  const std::string which(1, side);
  throw Error(ErrorCode::bad_data,
              which + ": edge " + std::to_string(edge) + " names member " + std::to_string(id) + ", but " +
                  (size == 0 ? "there are none" : "members are numbered from 0 to " + std::to_string(size - 1)));
}

}  // namespace

void require_in_range(const BipartiteEdges& edges, std::int64_t edge) {
  require_member(edges.a(edge), edges.n_a(), edge, 'a');
  require_member(edges.b(edge), edges.n_b(), edge, 'b');
}

}  // namespace kernels
}  // namespace vicinal
