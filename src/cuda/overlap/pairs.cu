// See overlap.hpp: pairs of few edges, a thread each. Classes of size have launches of their own: the more pieces a
// pair may have, the fewer pairs a multiprocessor has shared memory for. Cost of two six-sided buildings: some 1,500
// float64 operations and 300 bytes, so that operations bound it.
#include <algorithm>

#include "cuda/base/order.hpp"
#include "cuda/base/shared_memory.hpp"
#include "cuda/overlap/pair.cuh"

namespace vicinal::cuda::overlap {
namespace {

constexpr int kPairThreads = 32;
constexpr int kClasses = 3;
constexpr std::int64_t kMaxRuns = 8;

/// The most edges of a feature of a class; larger ones are the host's.
constexpr int most_edges(int size_class) {
  return size_class == 0 ? 6 : size_class == 1 ? 16 : 40;
}
/// Pieces that there is room for. An edge is cut to two at most, which for small features is rare: a pair whose pieces
/// do not fit moves on to the next class.
constexpr int most_pieces(int size_class) {
  return size_class == 0 ? 8 : 2 * most_edges(size_class);
}

__device__ int class_of(const geo::Edges& edges) {
  if (edges.count > kMaxRuns) return kClasses;
  std::int64_t sum = 0;
  for (std::int64_t k = 0; k < edges.count; ++k) sum += edges.runs[k].edges;
  int found = 0;
  while (found < kClasses && sum > most_edges(found)) ++found;
  return found;
}

__device__ void ends_of(const PairTask& of, std::int64_t candidate, std::int64_t& i, std::int64_t& j) {
  const unsigned long long key = of.keys[candidate];
  i = of.first + static_cast<std::int64_t>(key >> of.bits);
  j = static_cast<std::int64_t>(key & ((1ULL << of.bits) - 1));
}

/// Names every pair, undecided yet, and finds its class.
__global__ void class_kernel(LayerView a, LayerView b, PairTask of, std::uint8_t* classes) {
  const std::int64_t at = own_number();
  if (at >= of.count) return;
  std::int64_t i = 0;
  std::int64_t j = 0;
  ends_of(of, at, i, j);
  of.found[at] = {a.first + i, b.first + j, plugin::kUndecided, 0, 0};
  classes[at] = static_cast<std::uint8_t>(std::max(class_of(a.edges(i)), class_of(b.edges(j))));
}

__global__ void flag_kernel(const std::uint8_t* classes, std::int64_t count, std::uint8_t wanted, std::uint8_t* flags) {
  const std::int64_t at = own_number();
  if (at < count) flags[at] = classes[at] == wanted ? 1 : 0;
}

/// Of one class.
struct PairList {
  const std::uint32_t* numbers = nullptr;
  std::uint8_t* classes = nullptr;
  int capacity = 0;
};

__global__ void __launch_bounds__(kPairThreads)
    pair_kernel(LayerView a, LayerView b, PairTask of, PairList list, std::int64_t begin, std::int64_t end) {
  extern __shared__ double room[];
  const std::int64_t at = begin + own_number();
  if (at >= end) return;
  const std::uint32_t number = list.numbers[at];
  std::int64_t i = 0;
  std::int64_t j = 0;
  ends_of(of, number, i, j);
  const int numbers = of.widths ? 5 : 4;
  double* const column = room + threadIdx.x;
  SharedChain pieces_a(column, numbers, list.capacity);
  SharedChain pieces_b(column + list.capacity * numbers * kPairThreads, numbers, list.capacity);
  Overlap pair{a.first + i, b.first + j, plugin::kUndecided, 0, 0};
  if (PairOnDevice(a, i, b, j, pieces_a, pieces_b).decide(of.widths, pair)) {
    of.found[number] = pair;
  } else {
    ++list.classes[number];
  }
}

}  // namespace

std::uint64_t decide_bytes(std::int64_t count) {
  // Classes, flags, list; and what listing takes: some words a block.
  return static_cast<std::uint64_t>(count) * (2 + sizeof(std::uint32_t) + 1) + (std::uint64_t{1} << 20);
}

void decide_pairs(const Engine& engine, const Host& host, const LayerView& a, const LayerView& b,
                  const PairTask& candidates) {
  const std::int64_t count = candidates.count;
  if (count == 0) return;
  const Buffer<std::uint8_t> classes(engine, count);
  const Buffer<std::uint8_t> flags(engine, count);
  const Buffer<std::uint32_t> list(engine, count);
  const Buffer<std::int64_t> listed(engine, 1);
  const unsigned blocks = blocks_for(count, kThreads);
  class_kernel<<<blocks, kThreads, 0, engine.stream>>>(a, b, candidates, classes.data());
  check_launch("classes of pairs");
  for (int size_class = 0; size_class < kClasses; ++size_class) {
    flag_kernel<<<blocks, kThreads, 0, engine.stream>>>(classes.data(), count, static_cast<std::uint8_t>(size_class),
                                                        flags.data());
    check_launch("pairs of a class");
    list_flagged(engine, flags.data(), count, list.data(), listed.data());
    std::int64_t pairs = 0;
    to_host(engine, &pairs, listed.data(), 1);
    engine.synchronize();
    const PairList task{list.data(), classes.data(), most_pieces(size_class)};
    const std::size_t bytes =
        sizeof(double) * static_cast<std::size_t>(2 * task.capacity * (candidates.widths ? 5 : 4) * kPairThreads);
    if (bytes > engine.shared_memory) break;  // what a smaller device has no room for is the host's
    allow_shared_memory(engine, pair_kernel, bytes);
    in_slices(engine, host, pairs, [&](std::int64_t begin, std::int64_t end) {
      pair_kernel<<<blocks_for(end - begin, kPairThreads), kPairThreads, bytes, engine.stream>>>(a, b, candidates, task,
                                                                                                 begin, end);
      check_launch("decide pairs");
    });
  }
}

}  // namespace vicinal::cuda::overlap
