// The CPU's half of the waist for graphs (backend/graph.hpp), and what all backends share of it.
#include "cpu/graph/graphs.hpp"

#include <string>

namespace vicinal::kernels {
namespace {

class CpuGraphs final : public Graphs {
 public:
  GraphBytes graph_bytes(const Context& /*ctx*/, const GraphTask& task) const override {
    switch (task.method) {
      case CoclusterMethod::components:
        return {cpu::component_bytes(task), 0};
      case CoclusterMethod::closure:
        return {cpu::closure_bytes(task), 0};
      default:
        return {cpu::product_bytes(task), 0};
    }
  }
  void label(const Context& ctx, const GraphTask& task, GraphLabels& labels) const override {
    switch (task.method) {
      case CoclusterMethod::components:
        return cpu::label_components(ctx, task, labels);
      case CoclusterMethod::closure:
        return cpu::label_by_bits(ctx, task, labels);
      default:
        return cpu::label_by_products(ctx, task, labels);
    }
  }
};

void require_member(std::int64_t id, std::int64_t size, std::int64_t edge, char side) {
  if (id >= 0 && id < size) return;
  const std::string which(1, side);
  throw Error(ErrorCode::bad_data,
              which + ": edge " + std::to_string(edge) + " names member " + std::to_string(id) + ", but " +
                  (size == 0 ? "there are none" : "members are numbered from 0 to " + std::to_string(size - 1)));
}

}  // namespace

const Graphs& cpu_graphs() {
  static const CpuGraphs graphs;
  return graphs;
}

void require_in_range(const BipartiteEdges& edges, std::int64_t edge) {
  require_member(edges.a(edge), edges.n_a(), edge, 'a');
  require_member(edges.b(edge), edges.n_b(), edge, 'b');
}

}  // namespace vicinal::kernels
