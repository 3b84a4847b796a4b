// Connected components on the device (contract clause 16): the CPU's union-find (cpu/graph/components.cpp), a thread an
// edge. Every pointer leads to a smaller number and only roots change by compare-and-swap, so that reads may be old:
// what was an ancestor stays one, and they may come from the multiprocessor's own cache. A swap that fails brings what
// is there now. Cost: a reading of the edges, some four sectors of `parent` an edge, two passes over it.
#include <algorithm>
#include <limits>

#include "cuda/graph/graphs.hpp"

namespace vicinal::cuda::graph {
namespace {

constexpr std::int64_t kEdges = std::int64_t{1} << 26;  // of a launch, between two looks at the cancel token

bool is_small(std::int64_t members) {
  return members <= std::int64_t{std::numeric_limits<std::uint32_t>::max()};
}

// The types that CUDA's own functions know.
template <class Number>
struct Cuda;
template <>
struct Cuda<std::uint32_t> {
  using Type = unsigned;
};
template <>
struct Cuda<std::uint64_t> {
  using Type = unsigned long long;
};

template <class T>
__device__ T root_of(T* parent, T x) {
  T above = __ldca(parent + x);
  while (above != x) {
    const T next = __ldca(parent + above);
    if (next == above) return above;
    parent[x] = next;
    x = next;
    above = __ldca(parent + x);
  }
  return x;
}

template <class T>
__device__ void unite(T* parent, T x, T y) {
  while (true) {
    x = root_of(parent, x);
    y = root_of(parent, y);
    if (x == y) return;
    if (x > y) {
      const T larger = x;
      x = y;
      y = larger;
    }
    const T found = atomicCAS(parent + y, y, x);
    if (found == y || found == x) return;
    y = found;
  }
}

template <class T>
__global__ void reset_kernel(T* parent, std::int64_t count) {
  const std::int64_t v = own_number();
  if (v < count) parent[v] = static_cast<T>(v);
}

template <class Id, class T>
__global__ void unite_kernel(EdgeReader<Id> edges, std::int64_t begin, std::int64_t end, T* parent) {
  const std::int64_t e = begin + own_number();
  std::uint64_t x = 0;
  std::uint64_t y = 0;
  if (e < end && edges.read(e, x, y)) unite(parent, static_cast<T>(x), static_cast<T>(y));
}

/// Writes no place but a thread's own: halving would put what is above a member over its root, which is there already.
template <class T>
__global__ void flatten_kernel(T* parent, std::int64_t count) {
  const std::int64_t v = own_number();
  if (v >= count) return;
  T root = static_cast<T>(v);
  for (T above = __ldca(parent + root); above != root; above = __ldca(parent + root)) root = above;
  parent[v] = root;
}

template <class Number>
void label_with(const Engine& engine, const Host& host, const DeviceEdges& edges, Buffer<Number>& labels,
                plugin::Bipartite& task) {
  labels = Buffer<Number>(engine, edges.members());
  auto* const parent = reinterpret_cast<typename Cuda<Number>::Type*>(labels.data());
  engine.synchronize();
  StreamTimer timer(engine.stream);
  const unsigned member_blocks = blocks_for(edges.members(), kThreads);
  reset_kernel<<<member_blocks, kThreads, 0, engine.stream>>>(parent, edges.members());
  check_launch("begin with members alone");
  with_reader(edges, [&](const auto& reader) {
    for (std::int64_t begin = 0; begin < edges.count; begin += kEdges) {
      const std::int64_t end = std::min(edges.count, begin + kEdges);
      unite_kernel<<<blocks_for(end - begin, kThreads), kThreads, 0, engine.stream>>>(reader, begin, end, parent);
      check_launch("unite");
      if (end == edges.count) break;
      engine.synchronize();
      host.check_cancelled();
      host.progress("components", static_cast<double>(end) / static_cast<double>(edges.count));
    }
  });
  flatten_kernel<<<member_blocks, kThreads, 0, engine.stream>>>(parent, edges.members());
  check_launch("flatten");
  task.seconds = timer.seconds();
}

}  // namespace

std::uint64_t component_bytes(std::int64_t members) {
  return static_cast<std::uint64_t>(members) * (is_small(members) ? 4 : 8);
}

void label_components(const Engine& engine, const Host& host, const DeviceEdges& edges, DeviceLabels& labels,
                      plugin::Bipartite& task) {
  is_small(edges.members()) ? label_with(engine, host, edges, labels.narrow, task)
                            : label_with(engine, host, edges, labels.wide, task);
}

}  // namespace vicinal::cuda::graph
