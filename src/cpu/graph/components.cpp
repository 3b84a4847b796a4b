// Connected components of a bipartite graph (contract clause 16): union-find by all threads at once
// (formulas/graph/forest.hpp). Cost: a reading of the edges, two places of `parent` an edge and those that they lead to
// (fetched ahead), one reading of `parent` at the end.
#include <algorithm>
#include <chrono>
#include <limits>

#include "core/parallel.hpp"
#include "core/seconds.hpp"
#include "cpu/graph/graphs.hpp"
#include "formulas/graph/forest.hpp"

namespace vicinal::cpu {
namespace {

constexpr std::int64_t kEdges = std::int64_t{1} << 16;    // of a task
constexpr std::int64_t kMembers = std::int64_t{1} << 16;  // of a task
// Enough for DRAM's latency each: edges whose own places are being fetched, those whose places have come and lead on to
// others', and members whose labels will be asked for.
constexpr std::int64_t kAhead = 96;
constexpr std::int64_t kParentsAhead = 48;
constexpr std::int64_t kLabelsAhead = 64;

template <class Body>
void in_parts(const Context& ctx, std::int64_t size, std::int64_t part, const Body& body) {
  core::parallel_for(ctx, (size + part - 1) / part, [&](std::int64_t task, int worker) {
    body(task * part, std::min(size, (task + 1) * part));
    if (worker == 0)
      ctx.report("components", static_cast<double>(task) * static_cast<double>(part) / static_cast<double>(size));
  });
}

template <class Id, class Number>
void unite_edges(const BipartiteEdges& edges, std::int64_t begin, std::int64_t end, core::Forest<Number>& forest) {
  const auto* const a = static_cast<const Id*>(edges.a());
  const auto* const b = static_cast<const Id*>(edges.b());
  const auto n_a = static_cast<std::uint64_t>(edges.n_a());
  const auto n_b = static_cast<std::uint64_t>(edges.n_b());
  for (std::int64_t e = begin; e < end; ++e) {
    if (const std::int64_t next = e + kAhead; next < edges.size()) {
      forest.fetch(static_cast<std::uint64_t>(a[next]));
      forest.fetch(n_a + static_cast<std::uint64_t>(b[next]));
    }
    if (const std::int64_t next = e + kParentsAhead; next < edges.size()) {
      forest.fetch_parent(static_cast<std::uint64_t>(a[next]));
      forest.fetch_parent(n_a + static_cast<std::uint64_t>(b[next]));
    }
    const auto x = static_cast<std::uint64_t>(a[e]);  // below 0: very large
    const auto y = static_cast<std::uint64_t>(b[e]);
    if (x >= n_a || y >= n_b) kernels::require_in_range(edges, e);
    forest.unite(static_cast<Number>(x), static_cast<Number>(n_a + y));
  }
}

template <class Number>
void label_with(const Context& ctx, const kernels::GraphTask& task, kernels::GraphLabels& labels) {
  const BipartiteEdges& edges = *task.edges;
  core::Forest<Number> forest(task.members(), ctx.threads() == 1);
  in_parts(ctx, task.members(), kMembers, [&](std::int64_t begin, std::int64_t end) { forest.reset(begin, end); });
  in_parts(ctx, edges.size(), kEdges, [&](std::int64_t begin, std::int64_t end) {
    edges.is_wide() ? unite_edges<std::int64_t>(edges, begin, end, forest)
                    : unite_edges<std::int32_t>(edges, begin, end, forest);
  });
  const std::int64_t n_a = edges.n_a();
  in_parts(ctx, task.members(), kMembers, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t v = begin; v < end; ++v) {
      forest.fetch_parent(static_cast<std::uint64_t>(v + kLabelsAhead));
      const auto label = static_cast<std::int64_t>(forest.flatten(static_cast<Number>(v)));
      (v < n_a ? labels.a[static_cast<std::size_t>(v)] : labels.b[static_cast<std::size_t>(v - n_a)]) = label;
    }
  });
}

bool is_small(const kernels::GraphTask& task) {
  return task.members() <= std::int64_t{std::numeric_limits<std::uint32_t>::max()};
}

}  // namespace

std::uint64_t component_bytes(const kernels::GraphTask& task) {
  return static_cast<std::uint64_t>(task.members()) * (is_small(task) ? sizeof(std::uint32_t) : sizeof(std::uint64_t));
}

void label_components(const Context& ctx, const kernels::GraphTask& task, kernels::GraphLabels& labels) {
  const auto start = std::chrono::steady_clock::now();
  is_small(task) ? label_with<std::uint32_t>(ctx, task, labels) : label_with<std::uint64_t>(ctx, task, labels);
  labels.seconds = seconds_since(start);
}

}  // namespace vicinal::cpu
