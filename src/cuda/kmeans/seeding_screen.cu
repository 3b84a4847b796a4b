// Rounds rows to bytes for the screen of k-means++ (seeding_screen.cuh), in the order in which the lanes of a warp want
// them for a product of 16 rows and 32 columns (mma.cuh). One reading of the table.
#include "cuda/base/element.hpp"
#include "cuda/base/exact_key.cuh"
#include "cuda/kmeans/seeding_screen.cuh"

namespace vicinal::cuda::kmeans {
namespace {

// Eight lanes a row, four columns a lane at a time.
template <class T>
__global__ void __launch_bounds__(kThreads)
    pack_kernel(const T* rows, const __grid_constant__ SeedView v, const double* middle, double scale) {
  const auto d = static_cast<int>(v.d);
  const std::int64_t row = (static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x) / 8;
  const int lane = threadIdx.x % 8;
  const unsigned mask = core::mask_of_eight();
  const bool is_row = row < v.n;
  const auto value = [&](int j) {
    return is_row && j < d ? __dmul_rn(__dsub_rn(widen(rows[row * d + j]), middle[j]), scale) : 0.0;
  };
  double largest = 0;
  for (int j = lane; j < d; j += 8) largest = fmax(largest, fabs(value(j)));
  for (int step = 4; step > 0; step /= 2) largest = fmax(largest, __shfl_xor_sync(mask, largest, step));
  const float unit = __double2float_ru(__ddiv_ru(largest, 127.0));
  double errors = 0;
  double squares = 0;
  long long bytes_square = 0;
  // Row r of 16: its words of a product lie with lanes 4 (r % 8) and on, of the last eight rows behind the first's.
  auto* const words = reinterpret_cast<std::uint32_t*>(v.packed + row / 16 * v.steps * 32);
  const auto r = static_cast<int>(row % 16);
  const int place = (r % 8 * 4 + lane % 4) * 4 + r / 8 + lane / 4 * 2;
  for (int step = 0; step < v.steps; ++step) {
    std::uint32_t word = 0;
    for (int i = 0; i < 4; ++i) {
      const double x = value(step * 32 + lane * 4 + i);
      const int byte = unit > 0 ? __double2int_rn(__ddiv_rn(x, unit)) : 0;
      const double error = __dsub_rn(x, __dmul_rn(static_cast<double>(unit), byte));
      errors += error * error;
      squares += x * x;
      bytes_square += byte * byte;
      word |= (static_cast<std::uint32_t>(byte) & 0xFFU) << 8 * i;
    }
    words[step * 128 + place] = word;
  }
  for (int step = 4; step > 0; step /= 2) {
    errors += __shfl_xor_sync(mask, errors, step);
    squares += __shfl_xor_sync(mask, squares, step);
    bytes_square += __shfl_xor_sync(mask, bytes_square, step);
  }
  if (lane != 0 || !is_row) return;
  // 2^-50 for x's own rounding and these sums'; 2^-400 for what vanishes.
  const double error = __dsqrt_ru(errors) * (1 + 0x1p-30) + __dsqrt_ru(squares) * 0x1p-50 + 0x1p-400;
  SeedFacts& facts = v.facts[row];
  facts.scale = unit;
  facts.square = __double2float_rn(static_cast<double>(unit) * unit * static_cast<double>(bytes_square));
  facts.error = __double2float_ru(error);
}

}  // namespace

void pack_seeds(const Engine& engine, const Rows& rows, const SeedView& view, const double* middle, double scale) {
  with_elements(rows.data, rows.dtype, [&](const auto* data) {
    pack_kernel<<<blocks_for(padded_rows(view.n) * 8, kThreads), kThreads, 0, engine.stream>>>(data, view, middle,
                                                                                               scale);
  });
  check_launch("pack rows in bytes");
}

}  // namespace vicinal::cuda::kmeans
