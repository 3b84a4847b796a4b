// See graphs.hpp: memory, edges up, labels down.
#include <algorithm>

#include "cuda/base/memory.hpp"
#include "cuda/graph/graphs.hpp"
#include "vicinal/cocluster.hpp"

namespace vicinal::cuda::graph {
namespace {

constexpr std::int64_t kPart = std::int64_t{1} << 23;  // labels handed over between two looks at the cancel token

template <class Number>
__global__ void widen_kernel(const Number* labels, std::int64_t count, std::int64_t* wide) {
  const std::int64_t i = own_number();
  if (i < count) wide[i] = static_cast<std::int64_t>(labels[i]);
}

/// Labels of `count` members from `first` on, to memory of the host's.
void hand_over(const Engine& engine, const Host& host, const DeviceLabels& labels, std::int64_t first,
               std::int64_t count, std::int64_t* to) {
  const Buffer<std::int64_t> wide(engine, std::min(kPart, count));
  for (std::int64_t begin = 0; begin < count; begin += kPart) {
    const std::int64_t part = std::min(kPart, count - begin);
    const unsigned blocks = blocks_for(part, kThreads);
    if (labels.narrow.size() > 0) {
      widen_kernel<<<blocks, kThreads, 0, engine.stream>>>(labels.narrow.data() + first + begin, part, wide.data());
    } else {
      widen_kernel<<<blocks, kThreads, 0, engine.stream>>>(labels.wide.data() + first + begin, part, wide.data());
    }
    check_launch("widen labels");
    to_host(engine, to + begin, wide.data(), part);
    engine.synchronize();
    host.check_cancelled();
  }
}

std::uint64_t bytes_of(const plugin::Bipartite& task) {
  const std::int64_t members = task.n_a + task.n_b;
  const auto edges = static_cast<std::uint64_t>(task.a.rows) * 2 * static_cast<std::uint64_t>(row_bytes(task.a));
  const std::uint64_t labels = static_cast<std::uint64_t>(std::min(members, kPart)) * sizeof(std::int64_t);
  switch (static_cast<CoclusterMethod>(task.method)) {
    case CoclusterMethod::components:
      return edges + labels + component_bytes(members);
    case CoclusterMethod::closure:
      return edges + labels + closure_bytes(members);
    default:
      return edges + labels + product_bytes(members);
  }
}

}  // namespace

std::uint64_t graph_bytes(const Session& session, const plugin::Bipartite& task) {
  return require_left(session, bytes_of(task));
}

void label_members(Session& session, const Host& host, plugin::Bipartite& task) {
  static_cast<void>(graph_bytes(session, task));
  const Engine& engine = session.engine;
  const std::int64_t count = task.a.rows;
  const std::int64_t bytes = count * row_bytes(task.a);
  const Buffer<std::byte> a(engine, bytes);
  const Buffer<std::byte> b(engine, bytes);
  if (count > 0) {
    upload_rows(session, task.a, 0, count, a.data(), engine.stream);
    upload_rows(session, task.b, 0, count, b.data(), engine.stream);
  }
  const Buffer<unsigned long long> wrong(engine, 1);
  check(cudaMemsetAsync(wrong.data(), 0xff, sizeof(unsigned long long), engine.stream), "clear device memory");
  const DeviceEdges edges{a.data(), b.data(), row_bytes(task.a) == 8, count, task.n_a, task.n_b, wrong.data()};
  DeviceLabels labels;
  switch (static_cast<CoclusterMethod>(task.method)) {
    case CoclusterMethod::components:
      label_components(engine, host, edges, labels, task);
      break;
    case CoclusterMethod::closure:
      label_by_bits(engine, host, edges, labels, task);
      break;
    default:
      label_by_products(engine, host, edges, labels, task);
  }
  unsigned long long first_wrong = 0;
  to_host(engine, &first_wrong, wrong.data(), 1);
  engine.synchronize();
  if (first_wrong != ~0ULL) {
    task.wrong_edge = static_cast<std::int64_t>(first_wrong);
    return;
  }
  hand_over(engine, host, labels, 0, task.n_a, task.labels_a);
  hand_over(engine, host, labels, task.n_a, task.n_b, task.labels_b);
}

}  // namespace vicinal::cuda::graph
