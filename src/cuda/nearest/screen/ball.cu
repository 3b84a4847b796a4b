// See ball.hpp. With q a query of the ball, c its center, U no less than the distance of any of q's answers y:
// |y - c| <= |y - q| + |q - c| <= U + |q - c| <= R, the largest such sum. Distances are computed in float64 here and
// err by less than (d + 8) 2^-51 of themselves (a sum of d rounded squares of rounded differences, a root); R and the
// test of a row are widened by that. U takes the key's own rounding in (core::half_reach).
#include <algorithm>
#include <vector>

#include "core/octet.hpp"
#include "cuda/base/element.hpp"
#include "cuda/base/order.hpp"
#include "cuda/nearest/screen/ball.hpp"
#include "formulas/nearest/half_screen.hpp"

namespace vicinal::cuda {
namespace {

// How many times as wide as its first query's reach a ball may be: float16 within it still tells apart a few hundredths
// of that reach.
constexpr double kSpread = 64;
constexpr std::int64_t kSampleRows = 1024;  // whose lengths say how long rows usually are
constexpr double kUsual = 16;               // times the length that one in sixteen of them exceeds

__host__ __device__ double margin(std::int64_t d) {
  return static_cast<double>(d + 8) * 0x1p-51;
}

/// Not below the distance; eight lanes.
template <class T>
__device__ double distance(const T* row, const double* centre, std::int64_t d) {
  double sum = 0;
  for (std::int64_t j = threadIdx.x % 8; j < d; j += 8) {
    const double t = widen(row[j]) - centre[j];
    sum += t * t;
  }
  return sqrt(core::sum_of_eight(sum)) * (1 + margin(d));
}

/// Rounded to float32 where the table is no wider, because its rows are centered there.
template <class T>
__global__ void centre_kernel(const T* queries, std::int64_t d, bool narrow, const std::int64_t* numbers,
                              double* centre) {
  const T* query = queries + numbers[0] * d;
  for (std::int64_t j = threadIdx.x; j < d; j += kThreads) {
    const double value = widen(query[j]);
    centre[j] = narrow ? static_cast<double>(static_cast<float>(value)) : value;
  }
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    near_kernel(const T* queries, std::int64_t d, const std::int64_t* numbers, const double* limits, std::int64_t count,
                const double* centre, std::uint8_t* flags, unsigned long long* radius) {
  const std::int64_t i = (static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x) / 8;
  if (i >= count) return;
  const double away = distance(queries + numbers[i] * d, centre, d);
  if (threadIdx.x % 8 != 0) return;
  const double reach = (away + core::half_reach(limits[i], d, 1)) * (1 + 0x1p-50);
  const double widest = kSpread * core::half_reach(limits[0], d, 1);
  const bool joins = i == 0 || (widest < HUGE_VAL && reach <= widest);
  flags[i] = joins ? 1 : 0;
  // Of numbers that are not negative the bits are in order; a NaN is the largest of all.
  if (joins) atomicMax(radius, static_cast<unsigned long long>(__double_as_longlong(fabs(reach))));
}

template <class T>
__global__ void __launch_bounds__(kThreads) ball_kernel(const T* table, std::int64_t d, Chosen chosen,
                                                        const double* centre, double radius, std::uint8_t* flags) {
  const std::int64_t i = (static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x) / 8;
  if (i >= chosen.count) return;
  const double away = distance(table + chosen.row(i) * d, centre, d);
  if (threadIdx.x % 8 == 0) flags[i] = away > radius * (1 + 4 * margin(d)) ? 0 : 1;
}

template <class T>
__global__ void __launch_bounds__(kThreads) sample_kernel(const T* table, std::int64_t d, Chosen chosen,
                                                          const double* centre, std::int64_t sample, double* lengths) {
  const std::int64_t i = (static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x) / 8;
  if (i >= sample) return;
  const double away = distance(table + chosen.row(i * chosen.count / sample) * d, centre, d);
  if (threadIdx.x % 8 == 0) lengths[i] = away;
}

}  // namespace

Ball next_ball(const Engine& engine, const Rows& queries, bool narrow, Waiting& waiting, std::int64_t first,
               std::int64_t count, double* centre) {
  const std::int64_t d = queries.d;
  const std::int64_t* numbers = waiting.numbers.data() + first;
  const Buffer<std::uint8_t> flags(engine, count);
  const Buffer<std::int64_t> found(engine, 2);  // queries, and the radius' bits
  found.zero();
  with_elements(queries.data, queries.dtype, [&](const auto* rows) {
    centre_kernel<<<1, kThreads, 0, engine.stream>>>(rows, d, narrow, numbers, centre);
    near_kernel<<<blocks_for(count * 8, kThreads), kThreads, 0, engine.stream>>>(
        rows, d, numbers, waiting.limits.data() + first, count, centre, flags.data(),
        reinterpret_cast<unsigned long long*>(found.data() + 1));
  });
  check_launch("find a ball");
  part(engine, waiting.limits.data() + first, flags.data(), count, found.data());
  part(engine, waiting.numbers.data() + first, flags.data(), count, found.data());
  Ball ball;
  struct {
    std::int64_t queries;
    double radius;
  } told{};
  static_assert(sizeof told == 16);
  check(cudaMemcpyAsync(&told, found.data(), sizeof told, cudaMemcpyDeviceToHost, engine.stream), "measure a ball");
  engine.synchronize();
  ball.queries = told.queries;
  ball.radius = told.radius;
  return ball;
}

double usual_radius(const Engine& engine, const Rows& table, const Chosen& chosen, const double* centre) {
  const std::int64_t sample = std::min(chosen.count, kSampleRows);
  if (sample == 0) return 0;
  const Buffer<double> found(engine, sample);
  with_elements(table.data, table.dtype, [&](const auto* rows) {
    sample_kernel<<<blocks_for(sample * 8, kThreads), kThreads, 0, engine.stream>>>(rows, table.d, chosen, centre,
                                                                                    sample, found.data());
  });
  check_launch("measure rows");
  std::vector<double> lengths(static_cast<std::size_t>(sample));
  check(cudaMemcpyAsync(lengths.data(), found.data(), found.bytes(), cudaMemcpyDeviceToHost, engine.stream),
        "measure rows");
  engine.synchronize();
  const auto place = lengths.begin() + sample * 15 / 16;
  std::nth_element(lengths.begin(), place, lengths.end());
  return kUsual * *place;
}

void flag_ball(const Engine& engine, const Rows& table, const Chosen& chosen, const double* centre, double radius,
               std::uint8_t* flags) {
  with_elements(table.data, table.dtype, [&](const auto* rows) {
    ball_kernel<<<blocks_for(chosen.count * 8, kThreads), kThreads, 0, engine.stream>>>(rows, table.d, chosen, centre,
                                                                                        radius, flags);
  });
  check_launch("find rows of a ball");
}

}  // namespace vicinal::cuda
