// Bitonic sort (the GS paper): every query's row, padded to a power of two, goes through a fixed network of
// comparators: in shared memory while a comparator's two sides are near each other, in device memory where they are
// farther apart than a block has room for. Cost: n log2(n) (log2(n) + 1) / 4 comparisons, whatever k.
#include <algorithm>

#include "cuda/nearest/papers/selection.hpp"

namespace vicinal::cuda::papers {
namespace {

constexpr int kSortThreads = 512;
constexpr std::int64_t kShared = 2048;  // elements of a block

// Puts the larger score first where the stretch of `sorted` elements that i lies in descends.
__device__ void compare(ScoredRow& a, ScoredRow& b, bool descends) {
  if ((a.score < b.score) != descends) return;
  const ScoredRow other = a;
  a = b;
  b = other;
}

__global__ void fill_kernel(ScoreMatrix matrix, ScoredRow* pairs, std::int64_t size) {
  const std::int64_t i = own_number();
  if (i >= size) return;
  for (std::int64_t q = blockIdx.y; q < matrix.queries; q += gridDim.y) {
    pairs[q * size + i] = {i < matrix.n ? matrix.scores[q * matrix.n + i] : -INFINITY, static_cast<std::uint32_t>(i)};
  }
}

// All comparators of strides from `stride` down to 1 for sorted = first_sorted, and, where `all`, of every smaller
// `sorted` before.
__global__ void shared_kernel(ScoredRow* pairs, std::int64_t queries, std::int64_t size, std::int64_t sorted,
                              bool all) {
  __shared__ ScoredRow part[kShared];
  const std::int64_t room = size < kShared ? size : kShared;
  const std::int64_t begin = static_cast<std::int64_t>(blockIdx.x) * room;
  for (std::int64_t q = blockIdx.y; q < queries; q += gridDim.y) {
    ScoredRow* row = pairs + q * size + begin;
    for (std::int64_t i = threadIdx.x; i < room; i += kSortThreads) part[i] = row[i];
    for (std::int64_t now = all ? 2 : sorted; now <= sorted; now *= 2) {
      const std::int64_t widest = now / 2 < room / 2 ? now / 2 : room / 2;
      for (std::int64_t stride = widest; stride > 0; stride /= 2) {
        __syncthreads();
        for (std::int64_t j = threadIdx.x; j < room / 2; j += kSortThreads) {
          const std::int64_t i = j / stride * 2 * stride + j % stride;
          compare(part[i], part[i + stride], ((begin + i) & now) == 0);
        }
      }
    }
    __syncthreads();
    for (std::int64_t i = threadIdx.x; i < room; i += kSortThreads) row[i] = part[i];
    __syncthreads();
  }
}

// One layer of comparators that are too far apart for shared memory.
__global__ void far_kernel(ScoredRow* pairs, std::int64_t queries, std::int64_t size, std::int64_t sorted,
                           std::int64_t stride) {
  const std::int64_t j = own_number();
  if (j >= size / 2) return;
  const std::int64_t i = j / stride * 2 * stride + j % stride;
  for (std::int64_t q = blockIdx.y; q < queries; q += gridDim.y) {
    ScoredRow* row = pairs + q * size;
    compare(row[i], row[i + stride], (i & sorted) == 0);
  }
}

__global__ void first_kernel(const ScoredRow* pairs, std::int64_t queries, std::int64_t size, std::int64_t k,
                             std::int64_t* rows) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = own_number(); i < queries * k; i += step) {
    rows[i] = pairs[i / k * size + i % k].row;
  }
}

}  // namespace

std::int64_t sorted_size(std::int64_t n) {
  std::int64_t size = 2;
  while (size < n) size *= 2;
  return size;
}

void select_by_bitonic(const Engine& engine, const ScoreMatrix& matrix, std::int64_t k, ScoredRow* pairs,
                       std::int64_t* rows) {
  const std::int64_t size = sorted_size(matrix.n);
  const std::int64_t room = std::min(size, kShared);
  const auto lines = static_cast<unsigned>(std::min(matrix.queries, kMaxLines));
  fill_kernel<<<dim3(blocks_for(size, kSortThreads), lines), kSortThreads, 0, engine.stream>>>(matrix, pairs, size);
  check_launch("bitonic sort: fill");
  const dim3 in_shared(blocks_for(size, room), lines);
  shared_kernel<<<in_shared, kSortThreads, 0, engine.stream>>>(pairs, matrix.queries, size, room, true);
  check_launch("bitonic sort");
  for (std::int64_t sorted = 2 * room; sorted <= size; sorted *= 2) {
    for (std::int64_t stride = sorted / 2; stride >= room; stride /= 2) {
      far_kernel<<<dim3(blocks_for(size / 2, kSortThreads), lines), kSortThreads, 0, engine.stream>>>(
          pairs, matrix.queries, size, sorted, stride);
      check_launch("bitonic sort: far");
    }
    shared_kernel<<<in_shared, kSortThreads, 0, engine.stream>>>(pairs, matrix.queries, size, sorted, false);
    check_launch("bitonic sort: near");
  }
  first_kernel<<<std::min(blocks_for(matrix.queries * k, kSortThreads), 4096U), kSortThreads, 0, engine.stream>>>(
      pairs, matrix.queries, size, k, rows);
  check_launch("bitonic sort: first");
}

}  // namespace vicinal::cuda::papers
