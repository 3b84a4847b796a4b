// Connected components of a bipartite graph (contract clause 16): union-find by all threads at once, without a lock,
// after Rem (Dijkstra 1976; Patwary, Blair and Manne 2010; ConnectIt, Dhulipala et al. 2020, has it in parallel). Both
// ends climb together: the one whose parent is larger takes the other's parent and goes on from its own old one, until
// parents are equal or a root was hooked, by compare-and-swap. Every pointer leads to a smaller number, so that a
// component ends below its smallest member whatever the order of edges and threads. A store to a member that is no root
// may be late: the thread that makes it goes on to join what it replaced.
// Cost: a reading of the edges, two places of `parent` an edge (fetched ahead), one reading of `parent` at the end.
#if defined(__linux__)
#include <sys/mman.h>
#endif

#include <algorithm>
#include <atomic>
#include <chrono>
#include <limits>
#include <memory>

#include "core/aligned.hpp"
#include "core/parallel.hpp"
#include "core/seconds.hpp"
#include "cpu/graphs.hpp"

namespace vicinal::cpu {
namespace {

constexpr std::int64_t kEdges = std::int64_t{1} << 16;    // of a task
constexpr std::int64_t kMembers = std::int64_t{1} << 16;  // of a task
constexpr std::size_t kPage = std::size_t{1} << 21;       // a large one
constexpr std::int64_t kAhead = 32;  // edges whose places are being fetched; enough for DRAM's latency

/// Asks for large pages where the system has them: places are looked at all over the array, and its page tables are not
/// in the caches. What it answers does not matter.
void prefer_large_pages(void* data, std::size_t bytes) {
#if defined(__linux__)
  if (std::align(kPage, kPage, data, bytes) != nullptr)
    static_cast<void>(madvise(data, bytes / kPage * kPage, MADV_HUGEPAGE));
#else
  static_cast<void>(data);
  static_cast<void>(bytes);
#endif
}

template <class Number>
class Forest {
 public:
  /// `alone`: one thread works on it, which needs no atomic swaps.
  Forest(std::int64_t size, bool alone) : parent_(size), size_(static_cast<std::uint64_t>(size)), alone_(alone) {
    prefer_large_pages(parent_.data(), static_cast<std::size_t>(size) * sizeof(Number));
  }

  void reset(std::int64_t begin, std::int64_t end) {
    for (std::int64_t v = begin; v < end; ++v) parent_[v] = static_cast<Number>(v);
  }
  /// Begins to fetch the place of v, if there is one.
  void fetch(std::uint64_t v) const {
    if (v < size_) __builtin_prefetch(parent_.data() + v, 1);
  }

  void unite(Number x, Number y) {
    while (true) {
      Number of_x = at(x).load(std::memory_order_relaxed);
      Number of_y = at(y).load(std::memory_order_relaxed);
      if (of_x == of_y) return;
      if (of_x < of_y) {
        std::swap(x, y);
        std::swap(of_x, of_y);
      }
      if (of_x == x) {  // a root
        if (alone_) {
          parent_[static_cast<std::int64_t>(x)] = of_y;
          return;
        }
        if (at(x).compare_exchange_strong(of_x, of_y, std::memory_order_relaxed)) return;
        continue;
      }
      at(x).store(of_y, std::memory_order_relaxed);
      x = of_x;
    }
  }
  /// The root above v, to which v leads from then on. Asked for in ascending order this goes two steps and no further.
  Number flatten(Number v) {
    Number root = parent_of(parent_of(v));
    for (Number above = parent_of(root); above != root; above = parent_of(root)) root = above;
    at(v).store(root, std::memory_order_relaxed);
    return root;
  }
  /// Begins to fetch the place that v leads to, v's own being there.
  void fetch_parent(std::uint64_t v) {
    if (v < size_) fetch(parent_of(static_cast<Number>(v)));
  }

 private:
  Number parent_of(Number v) { return at(v).load(std::memory_order_relaxed); }
  std::atomic_ref<Number> at(Number v) { return std::atomic_ref<Number>(parent_[static_cast<std::int64_t>(v)]); }

  core::AlignedArray<Number> parent_;
  std::uint64_t size_;
  bool alone_;
};

template <class Body>
void in_parts(const Context& ctx, std::int64_t size, std::int64_t part, const Body& body) {
  core::parallel_for(ctx, (size + part - 1) / part, [&](std::int64_t task, int worker) {
    body(task * part, std::min(size, (task + 1) * part));
    if (worker == 0)
      ctx.report("components", static_cast<double>(task) * static_cast<double>(part) / static_cast<double>(size));
  });
}

template <class Id, class Number>
void unite_edges(const BipartiteEdges& edges, std::int64_t begin, std::int64_t end, Forest<Number>& forest) {
  const auto* const a = static_cast<const Id*>(edges.a());
  const auto* const b = static_cast<const Id*>(edges.b());
  const auto n_a = static_cast<std::uint64_t>(edges.n_a());
  const auto n_b = static_cast<std::uint64_t>(edges.n_b());
  const std::int64_t fetched = std::min(edges.size(), end + kAhead);
  for (std::int64_t e = begin; e < end; ++e) {
    if (e + kAhead < fetched) {
      forest.fetch(static_cast<std::uint64_t>(a[e + kAhead]));
      forest.fetch(n_a + static_cast<std::uint64_t>(b[e + kAhead]));
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
  Forest<Number> forest(task.members(), ctx.threads() == 1);
  in_parts(ctx, task.members(), kMembers, [&](std::int64_t begin, std::int64_t end) { forest.reset(begin, end); });
  in_parts(ctx, edges.size(), kEdges, [&](std::int64_t begin, std::int64_t end) {
    edges.is_wide() ? unite_edges<std::int64_t>(edges, begin, end, forest)
                    : unite_edges<std::int32_t>(edges, begin, end, forest);
  });
  const std::int64_t n_a = edges.n_a();
  in_parts(ctx, task.members(), kMembers, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t v = begin; v < end; ++v) {
      forest.fetch_parent(static_cast<std::uint64_t>(v + kAhead));
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
