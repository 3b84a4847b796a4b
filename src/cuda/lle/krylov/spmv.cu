// Products of a sparse matrix with one vector: the three forms of Li, Yan and Zhang 2021 (one block a row, one warp a
// row, rows padded to the warp's size), and ours: rows sorted into slices of 32 as they come, entry j of all of them
// side by side (Monakov, Lokhmotov and Avetisyan 2010), so that a warp reads whole lines and rows of regular width
// waste nothing. Every form adds in a fixed order. Bytes: 12 an entry, and x from the second level cache where it fits.
#include <algorithm>
#include <functional>
#include <vector>

#include "cuda/base/memory.hpp"
#include "cuda/base/warp.cuh"
#include "cuda/lle/krylov/cusparse.hpp"
#include "cuda/lle/krylov/krylov.hpp"

namespace vicinal::cuda::lle {
namespace {

constexpr int kSpmvThreads = 128;
constexpr int kSlice = 32;

__global__ void thread_row_kernel(const std::int64_t* __restrict__ first, const std::int32_t* __restrict__ index,
                                  const double* __restrict__ values, std::int64_t rows, const double* __restrict__ x,
                                  double* __restrict__ y) {
  const std::int64_t row = own_number();
  if (row >= rows) return;
  double total = 0;
  for (std::int64_t e = first[row]; e < first[row + 1]; ++e) total = __fma_rn(values[e], x[index[e]], total);
  y[row] = total;
}

__global__ void block_row_kernel(const std::int64_t* __restrict__ first, const std::int32_t* __restrict__ index,
                                 const double* __restrict__ values, const double* __restrict__ x,
                                 double* __restrict__ y) {
  __shared__ double parts[kSpmvThreads];
  const std::int64_t row = blockIdx.x;
  double total = 0;
  for (std::int64_t e = first[row] + threadIdx.x; e < first[row + 1]; e += kSpmvThreads) {
    total = __fma_rn(values[e], x[index[e]], total);
  }
  parts[threadIdx.x] = total;
  for (int step = kSpmvThreads / 2; step > 0; step /= 2) {
    __syncthreads();
    if (static_cast<int>(threadIdx.x) < step) parts[threadIdx.x] += parts[threadIdx.x + step];
  }
  if (threadIdx.x == 0) y[row] = parts[0];
}

// Rows begin where `first` says; whole: they are padded, and no lane needs to ask.
template <bool kWhole>
__global__ void warp_row_kernel(const std::int64_t* __restrict__ first, const std::int32_t* __restrict__ index,
                                const double* __restrict__ values, std::int64_t rows, const double* __restrict__ x,
                                double* __restrict__ y) {
  const std::int64_t row = (static_cast<std::int64_t>(blockIdx.x) * kSpmvThreads + threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x % 32);
  if (row >= rows) return;
  double total = 0;
  const std::int64_t end = first[row + 1];
  for (std::int64_t begin = first[row]; begin < end; begin += 32) {
    const std::int64_t e = begin + lane;
    if (kWhole || e < end) total = __fma_rn(values[e], x[index[e]], total);
  }
  for (int step = 16; step > 0; step /= 2) total += __shfl_xor_sync(kWholeWarp, total, step);
  if (lane == 0) y[row] = total;
}

__global__ void sliced_kernel(const std::int64_t* __restrict__ first, const std::int32_t* __restrict__ index,
                              const double* __restrict__ values, std::int64_t rows, const double* __restrict__ x,
                              double* __restrict__ y) {
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * kSpmvThreads + threadIdx.x;
  if (row >= rows) return;
  const std::int64_t slice = row / kSlice;
  const std::int64_t end = first[slice + 1];
  double total = 0;
#pragma unroll 4
  for (std::int64_t e = first[slice] + row % kSlice; e < end; e += kSlice) {
    total = __fma_rn(__ldcs(values + e), x[__ldcs(index + e)], total);
  }
  y[row] = total;
}

__global__ void eightfold_kernel(const double* __restrict__ x, std::int64_t count, double* __restrict__ wide) {
  const std::int64_t i = own_number();
  if (i < count * 8) wide[i] = x[i / 8];
}

__global__ void first_of_eight_kernel(const double* __restrict__ wide, std::int64_t count, double* __restrict__ y) {
  const std::int64_t i = own_number();
  if (i < count) y[i] = wide[i * 8];
}

/// The same matrix in another layout, on the host. Padding has value 0 in column 0.
struct Laid {
  std::vector<std::int64_t> first;
  std::vector<std::int32_t> index;
  std::vector<double> values;

  [[nodiscard]] plugin::CsrMatrix view(std::int64_t cols) const {
    return {static_cast<std::int64_t>(first.size()) - 1, cols, first.data(), index.data(), values.data()};
  }
};

Laid padded(const plugin::CsrMatrix& a) {
  Laid laid;
  laid.first.push_back(0);
  for (std::int64_t i = 0; i < a.rows; ++i) {
    laid.index.insert(laid.index.end(), a.index + a.first[i], a.index + a.first[i + 1]);
    laid.values.insert(laid.values.end(), a.values + a.first[i], a.values + a.first[i + 1]);
    const std::size_t whole = (laid.index.size() + 31) / 32 * 32;
    laid.index.resize(whole, 0);
    laid.values.resize(whole, 0.0);
    laid.first.push_back(static_cast<std::int64_t>(whole));
  }
  return laid;
}

Laid sliced(const plugin::CsrMatrix& a) {
  Laid laid;
  laid.first.push_back(0);
  for (std::int64_t begin = 0; begin < a.rows; begin += kSlice) {
    std::int64_t longest = 0;
    const std::int64_t end = std::min(a.rows, begin + kSlice);
    for (std::int64_t i = begin; i < end; ++i) longest = std::max(longest, a.first[i + 1] - a.first[i]);
    const std::int64_t at = laid.first.back();
    laid.index.resize(static_cast<std::size_t>(at + longest * kSlice), 0);
    laid.values.resize(static_cast<std::size_t>(at + longest * kSlice), 0.0);
    for (std::int64_t i = begin; i < end; ++i) {
      for (std::int64_t e = a.first[i]; e < a.first[i + 1]; ++e) {
        const std::int64_t to = at + (e - a.first[i]) * kSlice + (i - begin);
        laid.index[to] = a.index[e];
        laid.values[to] = a.values[e];
      }
    }
    laid.first.push_back(at + longest * kSlice);
  }
  return laid;
}

/// The median of `repeat` runs after one that is not timed.
double timed(const Engine& engine, const Host& host, std::int64_t repeat, const std::function<void()>& run) {
  run();
  engine.synchronize();
  cudaEvent_t events[2] = {};
  for (cudaEvent_t& event : events) check(cudaEventCreate(&event), "create an event");
  struct Done {
    cudaEvent_t* events;
    ~Done() {
      for (int i = 0; i < 2; ++i) static_cast<void>(cudaEventDestroy(events[i]));
    }
  } const done{events};
  std::vector<float> milliseconds(static_cast<std::size_t>(repeat));
  for (float& time : milliseconds) {
    check(cudaEventRecord(events[0], engine.stream), "record an event");
    run();
    check(cudaEventRecord(events[1], engine.stream), "record an event");
    check(cudaEventSynchronize(events[1]), "a sparse product");
    check(cudaEventElapsedTime(&time, events[0], events[1]), "read an event");
    host.check_cancelled();
  }
  std::nth_element(milliseconds.begin(), milliseconds.begin() + repeat / 2, milliseconds.end());
  return milliseconds[repeat / 2] / 1000.0;
}

}  // namespace

void time_spmv(Session& session, const Host& host, plugin::SpmvTask& task) {
  const Engine& engine = session.engine;
  const auto form = static_cast<plugin::SpmvForm>(task.form);
  const Laid laid = form == plugin::kSpmvPaddedRow ? padded(task.a)
                    : form == plugin::kSpmvSliced  ? sliced(task.a)
                                                   : Laid{};
  const plugin::CsrMatrix matrix = laid.first.empty() ? task.a : laid.view(task.a.cols);
  const std::int64_t width = form == plugin::kSpmvEight ? 8 : 1;
  const std::uint64_t vectors = static_cast<std::uint64_t>((task.a.rows + task.a.cols) * (width + 1)) * sizeof(double);
  const std::uint64_t bytes = DeviceCsr::bytes(matrix) + vectors;
  require_left(session, bytes);
  const std::int64_t rows = task.a.rows;
  if (rows == 0) return;
  const DeviceCsr a(engine, matrix);
  const Buffer<double> x(engine, task.a.cols);
  const Buffer<double> y(engine, rows);
  to_device(engine, x.data(), task.x, task.a.cols);
  const std::int64_t* const first = a.first.data();
  const std::int32_t* const index = a.index.data();
  const double* const values = a.values.data();
  const auto launched = [&](std::int64_t threads, const auto& kernel) {
    task.seconds = timed(engine, host, task.repeat, [&] {
      kernel<<<blocks_for(threads, kSpmvThreads), kSpmvThreads, 0, engine.stream>>>(first, index, values, rows,
                                                                                    x.data(), y.data());
      check_launch("a sparse product");
    });
  };
  switch (form) {
    case plugin::kSpmvThreadRow:
      launched(rows, thread_row_kernel);
      break;
    case plugin::kSpmvBlockRow:
      task.seconds = timed(engine, host, task.repeat, [&] {
        block_row_kernel<<<static_cast<unsigned>(rows), kSpmvThreads, 0, engine.stream>>>(first, index, values,
                                                                                          x.data(), y.data());
        check_launch("a sparse product");
      });
      break;
    case plugin::kSpmvWarpRow:
      launched(rows * 32, warp_row_kernel<false>);
      break;
    case plugin::kSpmvPaddedRow:
      launched(rows * 32, warp_row_kernel<true>);
      break;
    case plugin::kSpmvSliced:
      launched(rows, sliced_kernel);
      break;
    case plugin::kSpmvEight: {
      const Buffer<double> wide_x(engine, task.a.cols * 8);
      const Buffer<double> wide_y(engine, rows * 8);
      eightfold_kernel<<<blocks_for(task.a.cols * 8, kSpmvThreads), kSpmvThreads, 0, engine.stream>>>(
          x.data(), task.a.cols, wide_x.data());
      check_launch("eight vectors");
      task.seconds =
          timed(engine, host, task.repeat, [&] { multiply(engine, a, wide_x.data(), 8, SparseSum{}, wide_y.data()); });
      first_of_eight_kernel<<<blocks_for(rows, kSpmvThreads), kSpmvThreads, 0, engine.stream>>>(wide_y.data(), rows,
                                                                                                y.data());
      check_launch("the first of eight");
      break;
    }
    case plugin::kSpmvLibrary: {
      const papers::LibraryProduct product(engine, a, x.data(), y.data());
      task.seconds = timed(engine, host, task.repeat, [&] { product.run(); });
      engine.synchronize();
      break;
    }
  }
  to_host(engine, task.y, y.data(), rows);
  engine.synchronize();
}

}  // namespace vicinal::cuda::lle
