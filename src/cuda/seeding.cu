// See seeding.hpp. Sums that the contract wants in one order are added by one thread from shared memory: n / 1,024 of
// them for each row attempted. An attempt reads the table once for four rows.
#include <vector>

#include "cuda/exact_key.cuh"
#include "cuda/seeding.hpp"

namespace vicinal::cuda {
namespace {

constexpr int kChunk = 1024;
constexpr int kThreads = 256;

__device__ double mass(const double* weights, const double* keys, std::int64_t row) {
  return weights != nullptr ? __dmul_rn(weights[row], keys[row]) : keys[row];
}

// Before the first centre every key counts as 1.
__global__ void __launch_bounds__(kThreads)
    begin_kernel(std::int64_t n, const double* weights, double* keys, double* chunks) {
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * kChunk;
  const std::int64_t end = first + kChunk < n ? first + kChunk : n;
  for (std::int64_t i = first + threadIdx.x; i < end; i += kThreads) keys[i] = 1;
  __syncthreads();
  if (threadIdx.x >= 32) return;
  double sum = 0;
  if (threadIdx.x < 8) {
    for (std::int64_t i = first + threadIdx.x; i < end; i += 8) sum = __dadd_rn(sum, mass(weights, keys, i));
  }
  sum = sum_of_eight(sum, 0xFFFFFFFFU);
  if (threadIdx.x == 0) chunks[blockIdx.x] = sum;
}

// running[0] = 0, running[c + 1] = running[c] + chunks[c]. A block an attempt.
__global__ void __launch_bounds__(kThreads) run_kernel(std::int64_t count, const double* chunks, double* running) {
  __shared__ double values[kChunk];
  const double* const from = chunks + blockIdx.x * count;
  double* const to = running + blockIdx.x * (count + 1);
  double sum = 0;
  for (std::int64_t first = 0; first < count; first += kChunk) {
    const int size = static_cast<int>(count - first < kChunk ? count - first : kChunk);
    __syncthreads();
    for (int i = threadIdx.x; i < size; i += kThreads) values[i] = from[first + i];
    __syncthreads();
    if (threadIdx.x == 0) {
      for (int i = 0; i < size; ++i) {
        const double before = sum;
        sum = __dadd_rn(sum, values[i]);
        values[i] = before;
      }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < size; i += kThreads) to[first + i] = values[i];
  }
  if (threadIdx.x == 0) to[count] = sum;
}

// One block finds the row that u stands for.
__global__ void __launch_bounds__(kThreads)
    draw_kernel(double u, std::int64_t n, std::int64_t chunks, const double* weights, const double* keys,
                const double* running, std::int64_t* drawn) {
  __shared__ unsigned long long found;
  __shared__ double values[kChunk];
  const double total = running[chunks];
  if (total == 0) {
    if (threadIdx.x == 0) {
      const auto row = static_cast<std::int64_t>(__dmul_rn(u, static_cast<double>(n)));
      *drawn = row < n - 1 ? row : n - 1;
    }
    return;
  }
  const double target = __dmul_rn(u, total);
  if (threadIdx.x == 0) found = ~0ULL;
  __syncthreads();
  // Running sums never fall: the first chunk whose sum is above the target has a mass.
  for (std::int64_t c = threadIdx.x; c < chunks; c += kThreads) {
    if (running[c + 1] > target) {
      atomicMin(&found, static_cast<unsigned long long>(c));
      break;
    }
  }
  __syncthreads();
  if (found != ~0ULL) {
    const auto chunk = static_cast<std::int64_t>(found);
    const std::int64_t first = chunk * kChunk;
    const int size = static_cast<int>(n - first < kChunk ? n - first : kChunk);
    for (int i = threadIdx.x; i < size; i += kThreads) values[i] = mass(weights, keys, first + i);
    __syncthreads();
    if (threadIdx.x != 0) return;
    double sum = running[chunk];
    int last = 0;
    for (int i = 0; i < size; ++i) {
      if (values[i] == 0) continue;
      last = i;
      sum = __dadd_rn(sum, values[i]);
      if (sum > target) break;
    }
    *drawn = first + last;
    return;
  }
  // No sum was above it: the last row with a mass.
  __syncthreads();
  if (threadIdx.x == 0) found = 0;
  __syncthreads();
  for (std::int64_t i = n - 1 - threadIdx.x; i >= 0; i -= kThreads) {
    if (mass(weights, keys, i) == 0) continue;
    atomicMax(&found, static_cast<unsigned long long>(i));
    break;
  }
  __syncthreads();
  if (threadIdx.x == 0) *drawn = static_cast<std::int64_t>(found);
}

}  // namespace

Seeding::Seeding(const Engine& engine, const ClusterView& view, std::int64_t trials)
    : engine_(engine),
      view_(view),
      chunks_((view.rows.n + kChunk - 1) / kChunk),
      trials_(trials),
      keys_(engine, (trials + 1) * view.rows.n),
      sums_(engine, (trials + 1) * (2 * chunks_ + 1)),
      values_(engine, trials * view.rows.d),
      rows_(engine, trials),
      drawn_(engine, 1) {
  const Masses own = masses(trials_);
  begin_kernel<<<static_cast<unsigned>(chunks_), kThreads, 0, engine.stream>>>(view.rows.n, view.weights, own.keys,
                                                                               own.chunks);
  check_launch("begin to seed");
  run_kernel<<<1, kThreads, 0, engine.stream>>>(chunks_, own.chunks, own.running);
  check_launch("add masses");
}

Seeding::Masses Seeding::masses(std::int64_t slot) const {
  return {keys_.data() + slot * view_.rows.n, sums_.data() + slot * chunks_,
          sums_.data() + (trials_ + 1) * chunks_ + slot * (chunks_ + 1)};
}

std::int64_t Seeding::draw(double u) {
  const Masses own = masses(trials_);
  draw_kernel<<<1, kThreads, 0, engine_.stream>>>(u, view_.rows.n, chunks_, view_.weights, own.keys, own.running,
                                                  drawn_.data());
  check_launch("draw a row");
  std::int64_t row = 0;
  check(cudaMemcpyAsync(&row, drawn_.data(), sizeof row, cudaMemcpyDeviceToHost, engine_.stream), "fetch a row");
  engine_.synchronize();
  return row;
}

void Seeding::attempt(const std::int64_t* rows, std::int64_t count, double* totals) {
  check(cudaMemcpyAsync(rows_.data(), rows, static_cast<std::size_t>(count) * sizeof *rows, cudaMemcpyHostToDevice,
                        engine_.stream),
        "name rows");
  widen_chosen(engine_, view_.rows, rows_.data(), count, values_.data());
  const Masses first = masses(0);
  attempt_keys(engine_, view_, values_.data(), static_cast<int>(count), chosen_ ? masses(trials_).keys : nullptr,
               first.keys, first.chunks);
  run_kernel<<<static_cast<unsigned>(count), kThreads, 0, engine_.stream>>>(chunks_, first.chunks, first.running);
  check_launch("add masses");
  check(cudaMemcpy2DAsync(totals, sizeof(double), first.running + chunks_,
                          static_cast<std::size_t>(chunks_ + 1) * sizeof(double), sizeof(double),
                          static_cast<std::size_t>(count), cudaMemcpyDeviceToHost, engine_.stream),
        "fetch totals");
  engine_.synchronize();
}

void Seeding::take(std::int64_t attempt) {
  const Masses from = masses(attempt);
  const Masses to = masses(trials_);
  const auto copy = [&](double* there, const double* here, std::int64_t count) {
    check(cudaMemcpyAsync(there, here, static_cast<std::size_t>(count) * sizeof(double), cudaMemcpyDeviceToDevice,
                          engine_.stream),
          "take a centre");
  };
  copy(to.keys, from.keys, view_.rows.n);
  copy(to.chunks, from.chunks, chunks_);
  copy(to.running, from.running, chunks_ + 1);
  chosen_ = true;
}

std::uint64_t Seeding::bytes(std::int64_t n, std::int64_t d, std::int64_t trials) {
  const std::int64_t chunks = (n + kChunk - 1) / kChunk;
  return static_cast<std::uint64_t>((trials + 1) * (n + 2 * chunks + 1) + trials * (d + 1) + 1) * sizeof(double);
}

}  // namespace vicinal::cuda
