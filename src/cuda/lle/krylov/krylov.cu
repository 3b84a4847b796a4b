// See krylov.hpp. Products of tall blocks go by fixed parts of the rows, whose sums one block of threads adds in order:
// so two runs give the same bits. A filter's recurrence is two launches a degree, the terms before added by the second.
#include <algorithm>

#include "cuda/base/memory.hpp"
#include "cuda/lle/krylov/krylov.hpp"

namespace vicinal::cuda::lle {
namespace {

constexpr int kTallThreads = 256;
constexpr std::int64_t kTallParts = 256;
constexpr std::int64_t kBetweenLooks = 128;  // products between two looks at the cancel token

// partial[part, i] = x_i'y over the part's rows; blockIdx.x part, blockIdx.y i. x null: ones, of one column.
__global__ void __launch_bounds__(kTallThreads)
    inner_kernel(double* const* __restrict__ x, const double* __restrict__ y, std::int64_t n, int block,
                 double* __restrict__ partial) {
  __shared__ double lanes_sums[kTallThreads];
  const double* const from = x == nullptr ? nullptr : x[blockIdx.y];
  const int x_width = x == nullptr ? 1 : block;
  const int outputs = x_width * block;
  const std::int64_t begin = n * blockIdx.x / gridDim.x;
  const std::int64_t end = n * (blockIdx.x + 1) / gridDim.x;
  double* const to = partial + (static_cast<std::int64_t>(blockIdx.x) * gridDim.y + blockIdx.y) * outputs;
  const int at_once = outputs < kTallThreads ? outputs : kTallThreads;
  const int lanes = kTallThreads / at_once;
  const int lane = static_cast<int>(threadIdx.x) / at_once;
  for (int base = 0; base < outputs; base += at_once) {
    const int output = base + static_cast<int>(threadIdx.x) % at_once;
    double total = 0;
    if (lane < lanes && output < outputs) {
      const int r = output / block;
      const int c = output % block;
      for (std::int64_t i = begin + lane; i < end; i += lanes) {
        total = __fma_rn(from == nullptr ? 1.0 : from[i * block + r], y[i * block + c], total);
      }
    }
    lanes_sums[threadIdx.x] = total;
    __syncthreads();
    if (lane == 0 && output < outputs) {
      for (int other = 1; other < lanes; ++other) total += lanes_sums[other * at_once + static_cast<int>(threadIdx.x)];
      to[output] = total;
    }
    __syncthreads();
  }
}

__global__ void add_parts_kernel(const double* __restrict__ partial, std::int64_t count, int parts, double scale,
                                 double* __restrict__ sums) {
  const std::int64_t i = own_number();
  if (i >= count) return;
  double total = 0;
  for (int p = 0; p < parts; ++p) total += partial[p * count + i];
  sums[i] = total * scale;
}

// y -= X c for the first `count` blocks.
__global__ void subtract_kernel(double* const* __restrict__ x, int count, std::int64_t n, int block,
                                const double* __restrict__ c, double* __restrict__ y) {
  const std::int64_t at = own_number();
  if (at >= n * block) return;
  const std::int64_t row = at / block;
  const auto column = static_cast<int>(at % block);
  double total = y[at];
  for (int i = 0; i < count; ++i) {
    const double* const from = x[i] + row * block;
    for (int r = 0; r < block; ++r) total = __fma_rn(-from[r], c[(i * block + r) * block + column], total);
  }
  y[at] = total;
}

// to[n, block] = X c, columns [first, first + block) of c [count * block, columns].
__global__ void combine_kernel(double* const* __restrict__ x, int count, std::int64_t n, int block,
                               const double* __restrict__ c, std::int64_t columns, std::int64_t first,
                               double* __restrict__ to) {
  const std::int64_t at = own_number();
  if (at >= n * block) return;
  const std::int64_t row = at / block;
  const std::int64_t column = first + at % block;
  double total = 0;
  for (int i = 0; i < count; ++i) {
    const double* const from = x[i] + row * block;
    for (int r = 0; r < block; ++r) total = __fma_rn(from[r], c[(i * block + r) * columns + column], total);
  }
  to[at] = total;
}

__global__ void subtract_means_kernel(std::int64_t count, int block, const double* __restrict__ means,
                                      double* __restrict__ x) {
  const std::int64_t at = own_number();
  if (at < count) x[at] -= means[at % block];
}

std::uint64_t bytes_of(const plugin::KrylovTask& task) {
  const std::int64_t columns = task.blocks * task.block;
  // The basis, the spare block, and room for as many blocks again as a rotation may leave.
  const std::int64_t numbers = (2 * task.blocks + 1) * task.a.cols * task.block + task.a.rows * task.block +
                               (kTallParts + 1) * columns * task.block + columns * columns + task.blocks;
  return DeviceCsr::bytes(task.a) + DeviceCsr::bytes(task.transpose) +
         static_cast<std::uint64_t>(numbers) * sizeof(double);
}

std::int64_t parts_of_rows(std::int64_t n) {
  return std::clamp<std::int64_t>(n / 64, 1, kTallParts);
}

}  // namespace

std::uint64_t krylov_bytes(const Session& session, const plugin::KrylovTask& task) {
  return require_left(session, bytes_of(task));
}

DeviceKrylov::DeviceKrylov(Session& session, const plugin::KrylovTask& task)
    : session_(session),
      engine_(session.engine),
      n_((static_cast<void>(krylov_bytes(session, task)), task.a.cols)),
      block_(task.block),
      a_(engine_, task.a),
      transpose_(engine_, task.transpose),
      image_(engine_, task.a.rows * task.block),
      spare_(engine_, task.a.cols * task.block),
      sums_(engine_, task.blocks * task.block * task.block),
      partial_(engine_, kTallParts * task.blocks * task.block * task.block),
      small_(engine_, task.blocks * task.block * task.blocks * task.block),
      pointers_(engine_, task.blocks) {
  for (std::int64_t i = 0; i < task.blocks; ++i) {
    basis_.emplace_back(engine_, n_ * block_);
    basis_.back().zero();
  }
}

void DeviceKrylov::products(std::int64_t count, const double* x) const {
  const auto parts = static_cast<unsigned>(parts_of_rows(n_));
  inner_kernel<<<dim3(parts, static_cast<unsigned>(count)), kTallThreads, 0, engine_.stream>>>(
      pointers_.data(), x, n_, static_cast<int>(block_), partial_.data());
  check_launch("products of blocks");
  const std::int64_t numbers = count * block_ * block_;
  add_parts_kernel<<<blocks_for(numbers, kTallThreads), kTallThreads, 0, engine_.stream>>>(
      partial_.data(), numbers, static_cast<int>(parts), 1, sums_.data());
  check_launch("sums of parts");
}

void DeviceKrylov::subtract(std::int64_t count, double* x) const {
  subtract_kernel<<<blocks_for(n_ * block_, kTallThreads), kTallThreads, 0, engine_.stream>>>(
      pointers_.data(), static_cast<int>(count), n_, static_cast<int>(block_), sums_.data(), x);
  check_launch("a projection");
}

void DeviceKrylov::remove_means(double* x) const {
  const auto parts = static_cast<unsigned>(parts_of_rows(n_));
  for (int pass = 0; pass < 2; ++pass) {
    inner_kernel<<<dim3(parts, 1), kTallThreads, 0, engine_.stream>>>(nullptr, x, n_, static_cast<int>(block_),
                                                                      partial_.data());
    check_launch("sums of columns");
    add_parts_kernel<<<blocks_for(block_, kTallThreads), kTallThreads, 0, engine_.stream>>>(
        partial_.data(), block_, static_cast<int>(parts), 1 / static_cast<double>(n_), sums_.data());
    check_launch("means");
    subtract_means_kernel<<<blocks_for(n_ * block_, kTallThreads), kTallThreads, 0, engine_.stream>>>(
        n_ * block_, static_cast<int>(block_), sums_.data(), x);
    check_launch("means taken out");
  }
}

void DeviceKrylov::filter(const Host& host, const plugin::KrylovStep& step) {
  const double middle = (step.low + step.high) / 2;
  const double radius = (step.high - step.low) / 2;
  const double* const from = basis_[step.from].data();
  Buffer<double>& newest = basis_[step.to];
  multiply(engine_, a_, from, block_, {}, image_.data());
  multiply(engine_, transpose_, image_.data(), block_, {-1 / radius, middle / radius, from, 0}, newest.data());
  if (step.degree > 1) {
    check(cudaMemcpyAsync(spare_.data(), from, spare_.bytes(), cudaMemcpyDeviceToDevice, engine_.stream),
          "copy a block");
  }
  for (std::int64_t i = 1; i < step.degree; ++i) {
    multiply(engine_, a_, newest.data(), block_, {}, image_.data());
    multiply(engine_, transpose_, image_.data(), block_, {-2 / radius, 2 * middle / radius, newest.data(), -1},
             spare_.data());
    std::swap(newest, spare_);
    if (i % kBetweenLooks == 0) {
      engine_.synchronize();
      host.check_cancelled();
    }
  }
  remove_means(newest.data());
}

void DeviceKrylov::rotate(const plugin::KrylovStep& step) {
  to_device(engine_, small_.data(), step.small, step.count * block_ * step.columns);
  const std::int64_t made = step.columns / block_;
  std::vector<Buffer<double>> fresh;
  for (std::int64_t i = 0; i < made; ++i) {
    const Buffer<double>& to = fresh.emplace_back(engine_, n_ * block_);
    combine_kernel<<<blocks_for(n_ * block_, kTallThreads), kTallThreads, 0, engine_.stream>>>(
        pointers_.data(), static_cast<int>(step.count), n_, static_cast<int>(block_), small_.data(), step.columns,
        i * block_, to.data());
    check_launch("a rotation");
  }
  for (std::int64_t i = 0; i < made; ++i) std::swap(basis_[i], fresh[i]);
  engine_.synchronize();  // the host's matrix was read
}

void DeviceKrylov::fetch_sums(std::int64_t count, double* to) const {
  to_host(engine_, to, sums_.data(), count);
  engine_.synchronize();
}

void DeviceKrylov::step(const Host& host, const plugin::KrylovStep& step) {
  host.check_cancelled();
  host_pointers_.clear();
  for (const Buffer<double>& block : basis_) host_pointers_.push_back(block.data());
  to_device(engine_, pointers_.data(), host_pointers_.data(), pointers_.size());
  double* const x = basis_[step.to].data();
  switch (static_cast<plugin::KrylovWork>(step.work)) {
    case plugin::kKrylovStore:
      to_device(engine_, x, step.vectors, n_ * block_);
      break;
    case plugin::kKrylovLoad:
      to_host(engine_, step.vectors, x, n_ * block_);
      break;
    case plugin::kKrylovFilter:
      filter(host, step);
      break;
    case plugin::kKrylovProject: {
      const std::int64_t numbers = step.count * block_ * block_;
      std::vector<double> once(static_cast<std::size_t>(numbers));
      products(step.count, x);
      subtract(step.count, x);
      fetch_sums(numbers, once.data());
      products(step.count, x);
      subtract(step.count, x);
      fetch_sums(numbers, step.small);
      for (std::int64_t i = 0; i < numbers; ++i) step.small[i] += once[i];
      break;
    }
    case plugin::kKrylovGram: {
      // The block itself is all there is of the basis.
      to_device(engine_, pointers_.data(), &host_pointers_[step.to], 1);
      products(1, x);
      fetch_sums(block_ * block_, step.small);
      break;
    }
    case plugin::kKrylovScale: {
      to_device(engine_, pointers_.data(), &host_pointers_[step.to], 1);
      to_device(engine_, small_.data(), step.small, block_ * block_);
      combine_kernel<<<blocks_for(n_ * block_, kTallThreads), kTallThreads, 0, engine_.stream>>>(
          pointers_.data(), 1, n_, static_cast<int>(block_), small_.data(), block_, 0, spare_.data());
      check_launch("a block's columns");
      std::swap(basis_[step.to], spare_);
      break;
    }
    case plugin::kKrylovRotate:
      rotate(step);
      break;
    case plugin::kKrylovMove:
      std::swap(basis_[step.from], basis_[step.to]);
      break;
  }
  engine_.synchronize();  // what lies on the host may go
}

}  // namespace vicinal::cuda::lle
