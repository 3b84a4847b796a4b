// See sparse.hpp. Width 8: four threads a row hold two columns each, so that a row of x is one line that four threads
// read; a row's entries are read once for all columns. Width 1: four threads share a row's entries. Bytes moved: A
// once, a line of x an entry, which the second level cache holds where x is some tens of megabytes.
#include "cuda/base/warp.cuh"
#include "cuda/lle/krylov/sparse.hpp"

namespace vicinal::cuda::lle {
namespace {

constexpr int kSparseThreads = 256;
constexpr int kRowThreads = 4;
constexpr int kGroup = 8;  // columns at a time

struct CsrView {
  const std::int64_t* __restrict__ first;
  const std::int32_t* __restrict__ index;
  const double* __restrict__ values;
  std::int64_t rows;

  explicit CsrView(const DeviceCsr& a)
      : first(a.first.data()), index(a.index.data()), values(a.values.data()), rows(a.rows) {}
};

__device__ double combined(const SparseSum& sum, double product, std::int64_t at, const double* y) {
  double made = sum.scale * product;
  if (sum.also != 0) made += sum.also * sum.also_x[at];
  if (sum.own != 0) made += sum.own * y[at];
  return made;
}

// blockIdx.y: which eight columns.
__global__ void __launch_bounds__(kSparseThreads)
    multiply_group_kernel(CsrView a, const double* __restrict__ x, std::int64_t width, SparseSum sum, double* y) {
  const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * kSparseThreads + threadIdx.x;
  const std::int64_t row = thread / kRowThreads;
  if (row >= a.rows) return;
  const std::int64_t column = blockIdx.y * kGroup + (thread % kRowThreads) * 2;
  const double* const from = x + column;
  double left = 0;
  double right = 0;
  const std::int64_t end = a.first[row + 1];
#pragma unroll 4
  for (std::int64_t e = a.first[row]; e < end; ++e) {
    const double value = a.values[e];
    const double2 pair = *reinterpret_cast<const double2*>(from + a.index[e] * width);
    left = __fma_rn(value, pair.x, left);
    right = __fma_rn(value, pair.y, right);
  }
  const std::int64_t at = row * width + column;
  const double first = combined(sum, left, at, y);
  const double second = combined(sum, right, at + 1, y);
  *reinterpret_cast<double2*>(y + at) = make_double2(first, second);
}

__global__ void __launch_bounds__(kSparseThreads)
    multiply_column_kernel(CsrView a, const double* __restrict__ x, SparseSum sum, double* y) {
  const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * kSparseThreads + threadIdx.x;
  const std::int64_t row = thread / kRowThreads;
  const auto lane = static_cast<int>(thread % kRowThreads);
  double total = 0;
  if (row < a.rows) {
    const std::int64_t end = a.first[row + 1];
    for (std::int64_t e = a.first[row] + lane; e < end; e += kRowThreads) {
      total = __fma_rn(a.values[e], x[a.index[e]], total);
    }
  }
  for (int step = kRowThreads / 2; step > 0; step /= 2) total += __shfl_xor_sync(kWholeWarp, total, step);
  if (row < a.rows && lane == 0) y[row] = combined(sum, total, row, y);
}

}  // namespace

DeviceCsr::DeviceCsr(const Engine& engine, const plugin::CsrMatrix& matrix)
    : rows(matrix.rows),
      cols(matrix.cols),
      first(engine, matrix.rows + 1),
      index(engine, matrix.first[matrix.rows]),
      values(engine, matrix.first[matrix.rows]) {
  to_device(engine, first.data(), matrix.first, first.size());
  to_device(engine, index.data(), matrix.index, index.size());
  to_device(engine, values.data(), matrix.values, values.size());
  engine.synchronize();
}

std::uint64_t DeviceCsr::bytes(const plugin::CsrMatrix& matrix) {
  const auto entries = static_cast<std::uint64_t>(matrix.first[matrix.rows]);
  return static_cast<std::uint64_t>(matrix.rows + 1) * sizeof(std::int64_t) +
         entries * (sizeof(std::int32_t) + sizeof(double));
}

void multiply(const Engine& engine, const DeviceCsr& a, const double* x, std::int64_t width, const SparseSum& sum,
              double* y) {
  const unsigned blocks = blocks_for(a.rows * kRowThreads, kSparseThreads);
  if (width == 1) {
    multiply_column_kernel<<<blocks, kSparseThreads, 0, engine.stream>>>(CsrView(a), x, sum, y);
  } else {
    const dim3 grid(blocks, static_cast<unsigned>(width / kGroup));
    multiply_group_kernel<<<grid, kSparseThreads, 0, engine.stream>>>(CsrView(a), x, width, sum, y);
  }
  check_launch("a sparse product");
}

}  // namespace vicinal::cuda::lle
