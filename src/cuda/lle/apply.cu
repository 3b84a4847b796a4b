// Products with A and its transpose on the device: see lle.hpp. A thread makes one number: threads of a row of the
// result stand side by side, so that a column's numbers are read together and A's values once a row. Bytes moved: A
// once, x once a use.
#include <algorithm>

#include "cuda/base/order.hpp"
#include "cuda/lle/lle.hpp"

namespace vicinal::cuda::lle {
namespace {

struct Blocks {
  const std::int32_t* cols;
  const std::int64_t* first;
  const std::int32_t* owner;
  const double* values;
  std::int64_t points;
  std::int64_t width;
  std::int64_t rows;

  explicit Blocks(const DeviceBlocks& a)
      : cols(a.cols.data()),
        first(a.first.data()),
        owner(a.owner.data()),
        values(a.values.data()),
        points(a.points),
        width(a.width),
        rows(a.rows) {}
};

__global__ void owner_kernel(const std::int64_t* first, std::int64_t points, std::int32_t* owner) {
  const std::int64_t i = own_number();
  if (i >= points) return;
  for (std::int64_t r = first[i]; r < first[i + 1]; ++r) owner[r] = static_cast<std::int32_t>(i);
}

__global__ void apply_kernel(Blocks a, const double* __restrict__ x, std::int64_t q, double* __restrict__ y) {
  const std::int64_t at = own_number();
  if (at >= a.rows * q) return;
  const std::int64_t r = at / q;
  const std::int64_t c = at - r * q;
  const std::int32_t* cols = a.cols + a.owner[r] * a.width;
  const double* values = a.values + r * a.width;
  double sum = 0;
  for (std::int64_t j = 0; j < a.width; ++j) sum += values[j] * x[cols[j] * q + c];
  y[at] = sum;
}

__global__ void transposed_kernel(Blocks a, const std::int64_t* __restrict__ first,
                                  const std::uint32_t* __restrict__ places, const double* __restrict__ x,
                                  std::int64_t q, double* __restrict__ y) {
  const std::int64_t at = own_number();
  if (at >= a.points * q) return;
  const std::int64_t j = at / q;
  const std::int64_t c = at - j * q;
  double sum = 0;
  for (std::int64_t e = first[j]; e < first[j + 1]; ++e) {
    const std::int64_t block = places[e] / a.width;
    const std::int64_t column = places[e] - block * a.width;
    for (std::int64_t r = a.first[block]; r < a.first[block + 1]; ++r) {
      sum += a.values[r * a.width + column] * x[r * q + c];
    }
  }
  y[at] = sum;
}

__global__ void place_kernel(const std::int32_t* cols, std::int64_t count, unsigned long long* keys,
                             std::uint32_t* places) {
  const std::int64_t p = own_number();
  if (p >= count) return;
  keys[p] = static_cast<unsigned long long>(cols[p]);
  places[p] = static_cast<std::uint32_t>(p);
}

/// Where each key's entries begin among sorted ones; keys below `points`.
__global__ void boundary_kernel(const unsigned long long* keys, std::int64_t count, std::int64_t points,
                                std::int64_t* first) {
  const std::int64_t p = own_number();
  if (p > count) return;
  const std::int64_t before = p == 0 ? -1 : static_cast<std::int64_t>(keys[p - 1]);
  const std::int64_t here = p == count ? points : static_cast<std::int64_t>(keys[p]);
  for (std::int64_t j = before + 1; j <= here; ++j) first[j] = p;
}

__device__ void raise(unsigned long long* most, double value) {
  // Numbers that are not negative are in the order of their bits.
  atomicMax(most, static_cast<unsigned long long>(__double_as_longlong(value)));
}

__global__ void row_sum_kernel(Blocks a, unsigned long long* most) {
  const std::int64_t r = own_number();
  if (r >= a.rows) return;
  double sum = 0;
  for (std::int64_t j = 0; j < a.width; ++j) sum += fabs(a.values[r * a.width + j]);
  raise(most, sum);
}

__global__ void column_sum_kernel(Blocks a, const std::int64_t* first, const std::uint32_t* places,
                                  unsigned long long* most) {
  const std::int64_t j = own_number();
  if (j >= a.points) return;
  double sum = 0;
  for (std::int64_t e = first[j]; e < first[j + 1]; ++e) {
    const std::int64_t block = places[e] / a.width;
    const std::int64_t column = places[e] - block * a.width;
    for (std::int64_t r = a.first[block]; r < a.first[block + 1]; ++r) sum += fabs(a.values[r * a.width + column]);
  }
  raise(most, sum);
}

}  // namespace

std::uint64_t DeviceBlocks::bytes(std::int64_t points, std::int64_t width, std::int64_t rows) {
  const auto n = static_cast<std::uint64_t>(points);
  const auto m = static_cast<std::uint64_t>(rows);
  const auto w = static_cast<std::uint64_t>(width);
  return n * w * sizeof(std::int32_t) + (n + 1) * sizeof(std::int64_t) +
         m * (sizeof(std::int32_t) + w * sizeof(double));
}

void find_owners(const Engine& engine, const DeviceBlocks& a) {
  owner_kernel<<<blocks_for(a.points, kThreads), kThreads, 0, engine.stream>>>(a.first.data(), a.points,
                                                                               a.owner.data());
  check_launch("owners of rows");
}

std::uint64_t incidence_bytes(std::int64_t points, std::int64_t width) {
  return static_cast<std::uint64_t>(points + 1) * sizeof(std::int64_t) + KeyedValues::bytes(points * width);
}

DeviceIncidence incidence_of(const Engine& engine, const DeviceBlocks& a) {
  const std::int64_t count = a.points * a.width;
  if (count > std::int64_t{UINT32_MAX}) {
    throw Failure{ErrorCode::over_memory, "lle: more neighbors together than a device's factor could hold"};
  }
  DeviceIncidence in;
  in.first = Buffer<std::int64_t>(engine, a.points + 1);
  KeyedValues pairs(engine, count);
  place_kernel<<<blocks_for(count, kThreads), kThreads, 0, engine.stream>>>(a.cols.data(), count, pairs.keys[0].data(),
                                                                            pairs.values[0].data());
  check_launch("places of columns");
  int bits = 1;
  while (bits < 32 && std::int64_t{1} << bits < a.points) ++bits;
  sort_by_key(engine, pairs, count, bits);
  boundary_kernel<<<blocks_for(count + 1, kThreads), kThreads, 0, engine.stream>>>(pairs.keys[0].data(), count,
                                                                                   a.points, in.first.data());
  check_launch("blocks of columns");
  in.places = std::move(pairs.values[0]);
  return in;
}

void apply(const Engine& engine, const DeviceBlocks& a, const double* x, std::int64_t q, double* y) {
  apply_kernel<<<blocks_for(a.rows * q, kThreads), kThreads, 0, engine.stream>>>(Blocks(a), x, q, y);
  check_launch("a product with the blocks");
}

void apply_transposed(const Engine& engine, const DeviceBlocks& a, const DeviceIncidence& in, const double* x,
                      std::int64_t q, double* y) {
  transposed_kernel<<<blocks_for(a.points * q, kThreads), kThreads, 0, engine.stream>>>(Blocks(a), in.first.data(),
                                                                                        in.places.data(), x, q, y);
  check_launch("a product with the transposed blocks");
}

double norm_bound(const Engine& engine, const DeviceBlocks& a, const DeviceIncidence& in) {
  const Buffer<unsigned long long> most(engine, 2);
  most.zero();
  row_sum_kernel<<<blocks_for(a.rows, kThreads), kThreads, 0, engine.stream>>>(Blocks(a), most.data());
  check_launch("sums of rows");
  column_sum_kernel<<<blocks_for(a.points, kThreads), kThreads, 0, engine.stream>>>(Blocks(a), in.first.data(),
                                                                                    in.places.data(), most.data() + 1);
  check_launch("sums of columns");
  double found[2] = {};
  check(cudaMemcpyAsync(found, most.data(), sizeof(found), cudaMemcpyDeviceToHost, engine.stream),
        "copy from the device");
  engine.synchronize();
  return found[0] * found[1];
}

}  // namespace vicinal::cuda::lle
