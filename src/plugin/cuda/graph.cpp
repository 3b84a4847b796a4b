// See graphs.hpp.
#include "plugin/cuda/graph.hpp"

#include "backend/backend.hpp"
#include "plugin/abi/graph.hpp"

namespace vicinal::plugin {
namespace {

/// Ids as a table of one column, whose elements are as wide: they are copied, never read as numbers.
TableView ids_of(const BipartiteEdges& edges, const void* ids) {
  return {ids, edges.is_wide() ? DType::float64 : DType::float32, edges.size(), 1, 1};
}

Bipartite task_of(const kernels::GraphTask& task, const Table& a, const Table& b) {
  Bipartite asked;
  asked.a = a;
  asked.b = b;
  asked.n_a = task.edges->n_a();
  asked.n_b = task.edges->n_b();
  asked.method = static_cast<std::int32_t>(task.method);
  return asked;
}

}  // namespace

kernels::MemoryNeed CudaGraphs::bytes(const Context& ctx, const kernels::GraphTask& task) const {
  // The serial product is one of the host's, wherever the context is.
  if (task.method == CoclusterMethod::product_serial) return kernels::cpu_backend().graph().bytes(ctx, task);
  const BipartiteEdges& edges = *task.edges;
  const Bipartite asked = task_of(task, BorrowedTable::shape_of(ids_of(edges, edges.a())),
                                  BorrowedTable::shape_of(ids_of(edges, edges.b())));
  kernels::MemoryNeed bytes;
  bytes.host = 2 * static_cast<std::uint64_t>(kStagingBytes);
  Status status;
  device_->functions().label_bytes(device_->engine(), &asked, &bytes.device, &status);
  device_->check(status);
  return bytes;
}

void CudaGraphs::label(const Context& ctx, const kernels::GraphTask& task, kernels::GraphLabels& labels) const {
  if (task.method == CoclusterMethod::product_serial) return kernels::cpu_backend().graph().label(ctx, task, labels);
  const BipartiteEdges& edges = *task.edges;
  const TableView ids_a = ids_of(edges, edges.a());
  const TableView ids_b = ids_of(edges, edges.b());
  Bipartite asked;
  device_->use(ctx, [&](void* engine, Call& call, Status& status) {
    const BorrowedTable a(call, ids_a);
    const BorrowedTable b(call, ids_b);
    asked = task_of(task, a.table(), b.table());
    asked.labels_a = labels.a.data();
    asked.labels_b = labels.b.data();
    const HostCalls host = call.host();
    device_->functions().label(engine, &host, &asked, &status);
  });
  if (asked.wrong_edge >= 0) kernels::require_in_range(edges, asked.wrong_edge);
  labels.nonzeros.assign(asked.nonzeros, asked.nonzeros + asked.products);
  labels.seconds = asked.seconds;
}

}  // namespace vicinal::plugin
