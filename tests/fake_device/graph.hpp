// The graph half of the fake plug-in (plugin.cpp): the CPU's labels, behind the plug-in's functions.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "backend/backend.hpp"
#include "backend/graph.hpp"
#include "plugin/abi/graph.hpp"

namespace vicinal::plugin {

/// Ids have come as bytes.
inline void fake_labels(Bipartite& task, const std::vector<std::byte>& a, const std::vector<std::byte>& b) {
  const auto size = static_cast<std::size_t>(task.a.rows);
  const auto as = [&]<class Id>(const std::vector<std::byte>& ids, const Id* /*type*/) {
    return std::span<const Id>(reinterpret_cast<const Id*>(ids.data()), size);
  };
  constexpr const std::int64_t* kWide = nullptr;
  constexpr const std::int32_t* kNarrow = nullptr;
  const bool wide = static_cast<DType>(task.a.dtype) == DType::float64;
  const BipartiteEdges edges = wide ? BipartiteEdges(task.n_a, task.n_b, as(a, kWide), as(b, kWide))
                                    : BipartiteEdges(task.n_a, task.n_b, as(a, kNarrow), as(b, kNarrow));
  for (std::int64_t e = 0; e < edges.size(); ++e) {
    const bool right = edges.a(e) >= 0 && edges.a(e) < edges.n_a() && edges.b(e) >= 0 && edges.b(e) < edges.n_b();
    if (right) continue;
    task.wrong_edge = e;
    return;
  }
  kernels::GraphLabels labels{
      {task.labels_a, static_cast<std::size_t>(task.n_a)}, {task.labels_b, static_cast<std::size_t>(task.n_b)}, {}, 0};
  kernels::cpu_backend().graph().label(Context::cpu({.threads = 1}),
                                       {&edges, static_cast<CoclusterMethod>(task.method)}, labels);
  std::copy(labels.nonzeros.begin(), labels.nonzeros.end(), task.nonzeros);
  task.products = static_cast<std::int32_t>(labels.nonzeros.size());
  task.seconds = labels.seconds;
}

/// As a device's: edges, and matrices or numbers of the members.
inline std::uint64_t fake_bytes(const Bipartite& task) {
  const auto n = static_cast<std::uint64_t>(task.n_a + task.n_b);
  const auto edges = static_cast<std::uint64_t>(task.a.rows) * 16;
  switch (static_cast<CoclusterMethod>(task.method)) {
    case CoclusterMethod::components:
      return edges + 8 * n;
    case CoclusterMethod::closure:
      return edges + kernels::matrix_bytes(n, n / 4 + 8);
    default:
      return edges + kernels::matrix_bytes(n, 8 * n);
  }
}

}  // namespace vicinal::plugin
