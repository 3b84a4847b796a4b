// See solver/weights.hpp. A warp has one point, whose neighborhood (frame.cuh) says what rows its block of A has; here
// is where neighborhoods lie, the launches over all points, and how many rows each block has.
#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <vector>

#include "cuda/base/shared_memory.hpp"
#include "cuda/lle/frame.cuh"
#include "cuda/lle/weights.hpp"
#include "formulas/lle/block_shape.hpp"

namespace vicinal::cuda::lle {
namespace {

constexpr int kWarps = 4;                   // of a block
constexpr std::int64_t kPart = 1 << 20;     // points between two looks at the cancel token
constexpr std::int64_t kScratchBlocks = 4;  // a multiprocessor, where shared memory is too small

extern __shared__ double lle_shared[];

/// Calls body(frame, point) for the points [begin, end), a warp each.
template <class Body>
__device__ void for_each_point(const FrameShape& shape, std::int64_t begin, std::int64_t end, double* scratch,
                               const Body& body) {
  const std::int64_t warp = static_cast<std::int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
  double* const room = scratch != nullptr ? scratch + warp * shape.numbers()
                                          : lle_shared + static_cast<std::int64_t>(threadIdx.x / 32) * shape.numbers();
  Frame frame(shape, room);
  for (std::int64_t i = begin + warp; i < end; i += static_cast<std::int64_t>(gridDim.x) * kWarps) {
    frame.go_to(i);
    body(frame, i);
  }
}

struct Output {
  const std::int64_t* first;
  double* values;
  std::int64_t width;
};

__global__ void rows_kernel(FrameShape shape, std::int64_t begin, std::int64_t end, double* scratch, Output to,
                            unsigned long long* wrong, unsigned long long* largest) {
  const int lane = static_cast<int>(threadIdx.x) & 31;
  for_each_point(shape, begin, end, scratch, [&](Frame& frame, std::int64_t i) {
    double* const out = to.values + to.first[i] * to.width;
    switch (shape.variant) {
      case LleVariant::standard: {
        const bool good = frame.find_weights();
        double most = 0;
        if (lane == 0) out[0] = 1;
        for (int j = lane; j < shape.k; j += 32) {
          const double weight = frame.weight(j);
          out[1 + j] = -weight;
          most = fmax(most, fabs(weight));
        }
        most = most_of_warp(most);
        if (lane == 0 && !good) atomicMin(wrong, static_cast<unsigned long long>(i));
        if (lane == 0) atomicMax(largest, static_cast<unsigned long long>(__double_as_longlong(most)));
        break;
      }
      case LleVariant::modified:
        frame.modified_rows(static_cast<int>(to.first[i + 1] - to.first[i]), out);
        break;
      case LleVariant::hessian:
        frame.hessian_rows(out);
        break;
      default:
        frame.tangent_rows(out);
    }
    __syncwarp();
  });
}

__global__ void spectrum_kernel(FrameShape shape, std::int64_t begin, std::int64_t end, double* scratch,
                                double* spectra, double* ratios) {
  const int lane = static_cast<int>(threadIdx.x) & 31;
  for_each_point(shape, begin, end, scratch, [&](Frame& frame, std::int64_t i) {
    frame.find_spectrum();
    for (int c = lane; c < shape.nev; c += 32) spectra[i * shape.nev + c] = frame.squares()[c];
    if (lane == 0) ratios[i] = solver::share_left_out(frame.squares(), shape.nev, shape.dim);
    __syncwarp();
  });
}

/// How many sets of weights a row of `modified` has. The row whose own share is the median compares equal, because both
/// are made in the same way.
__global__ void sets_kernel(FrameShape shape, std::int64_t n, const double* spectra, double eta, std::int64_t* sets) {
  const std::int64_t i = own_number();
  if (i >= n) return;
  int below = 0;
  for (int kept = 1; kept < shape.nev; ++kept) {
    below += solver::share_left_out(spectra + i * shape.nev, shape.nev, kept) < eta ? 1 : 0;
  }
  sets[i] = max(1, shape.k - shape.nev + below);
}

__global__ void even_first_kernel(std::int64_t points, std::int64_t rows_each, std::int64_t* first) {
  const std::int64_t i = own_number();
  if (i <= points) first[i] = i * rows_each;
}

__global__ void cols_kernel(const std::int32_t* ids, std::int64_t n, int k, int own, std::int32_t* cols) {
  const std::int64_t at = own_number();
  const int width = k + own;
  if (at >= n * width) return;
  const std::int64_t i = at / width;
  const int j = static_cast<int>(at - i * width) - own;
  cols[at] = j < 0 ? static_cast<std::int32_t>(i) : ids[i * k + j];
}

std::int64_t most_block_rows(const LocalTask& task) {
  return solver::most_block_rows(task.variant, task.k, task.dim);
}

/// Where frames lie, and the launches over all points.
class Launches {
 public:
  Launches(const Engine& engine, const Host& host, const LocalTask& task)
      : engine_(engine), host_(host), n_(task.n), shape_(task) {
    shared_ = bytes(shape_);
    if (shared_ <= engine.shared_memory) {
      blocks_ = blocks_for(std::min(n_, kPart), kWarps);
      return;
    }
    shared_ = 0;
    blocks_ = static_cast<unsigned>(engine.multiprocessors * kScratchBlocks);
    scratch_ = Buffer<double>(engine, scratch_numbers(engine, shape_));
  }
  static std::size_t bytes(const FrameShape& shape) {
    return static_cast<std::size_t>(shape.numbers()) * kWarps * sizeof(double);
  }
  static std::int64_t scratch_numbers(const Engine& engine, const FrameShape& shape) {
    return bytes(shape) <= engine.shared_memory ? 0
                                                : engine.multiprocessors * kScratchBlocks * kWarps * shape.numbers();
  }

  template <class... Arguments>
  void run(void (*kernel)(FrameShape, std::int64_t, std::int64_t, double*, Arguments...), double from, double share,
           Arguments... arguments) const {
    allow_shared_memory(engine_, kernel, shared_);
    for (std::int64_t begin = 0; begin < n_; begin += kPart) {
      kernel<<<blocks_, kWarps * 32, shared_, engine_.stream>>>(shape_, begin, std::min(n_, begin + kPart),
                                                                scratch_.data(), arguments...);
      check_launch("weights of neighbors");
      engine_.synchronize();
      host_.check_cancelled();
      host_.progress("weights", from + share * static_cast<double>(begin) / static_cast<double>(n_));
    }
  }
  [[nodiscard]] const FrameShape& shape() const { return shape_; }

 private:
  const Engine& engine_;
  const Host& host_;
  std::int64_t n_;
  FrameShape shape_;
  std::size_t shared_ = 0;
  unsigned blocks_ = 0;
  Buffer<double> scratch_;
};

/// first[n + 1] of `modified`, on the host.
std::vector<std::int64_t> first_of_sets(const Engine& engine, const Launches& launches, std::int64_t n) {
  const FrameShape& shape = launches.shape();
  const Buffer<double> spectra(engine, n * shape.nev);
  std::vector<double> ratios(static_cast<std::size_t>(n));
  {
    const Buffer<double> found(engine, n);
    launches.run(spectrum_kernel, 0.0, 0.5, spectra.data(), found.data());
    to_host(engine, ratios.data(), found.data(), n);
    engine.synchronize();
  }
  // The median, of an even number the mean of the two in the middle.
  const auto middle = ratios.begin() + static_cast<std::ptrdiff_t>(n / 2);
  std::nth_element(ratios.begin(), middle, ratios.end());
  double eta = *middle;
  if (n % 2 == 0) eta = (eta + *std::max_element(ratios.begin(), middle)) / 2;
  const Buffer<std::int64_t> sets(engine, n);
  sets_kernel<<<blocks_for(n, 256), 256, 0, engine.stream>>>(shape, n, spectra.data(), eta, sets.data());
  check_launch("sets of weights");
  std::vector<std::int64_t> first(static_cast<std::size_t>(n) + 1, 0);
  to_host(engine, first.data() + 1, sets.data(), n);
  engine.synchronize();
  for (std::int64_t i = 0; i < n; ++i) first[i + 1] += first[i];
  return first;
}

}  // namespace

std::uint64_t local_bytes(const Engine& engine, const LocalTask& task) {
  const FrameShape shape(task);
  std::uint64_t bytes =
      DeviceBlocks::bytes(task.n, solver::block_width(task.variant, task.k), task.n * most_block_rows(task));
  bytes += static_cast<std::uint64_t>(Launches::scratch_numbers(engine, shape)) * sizeof(double);
  if (task.variant == LleVariant::modified) bytes += static_cast<std::uint64_t>(task.n) * (shape.nev + 2) * 8;
  return bytes;
}

namespace {

// As the host's sentence has it.
std::string shortest(double value) {
  std::array<char, 32> text;
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr};
}

}  // namespace

DeviceBlocks local_rows(const Engine& engine, const Host& host, const LocalTask& task, double& largest) {
  const std::int64_t n = task.n;
  const bool modified = task.variant == LleVariant::modified;
  const Launches launches(engine, host, task);
  std::vector<std::int64_t> first;
  if (modified) first = first_of_sets(engine, launches, n);
  DeviceBlocks a(engine, n, solver::block_width(task.variant, task.k),
                 modified ? first.back() : n * most_block_rows(task));
  if (modified) {
    to_device(engine, a.first.data(), first.data(), n + 1);
  } else {
    even_first_kernel<<<blocks_for(n + 1, 256), 256, 0, engine.stream>>>(n, most_block_rows(task), a.first.data());
    check_launch("rows of blocks");
  }
  find_owners(engine, a);
  cols_kernel<<<blocks_for(n * a.width, 256), 256, 0, engine.stream>>>(
      task.ids, n, static_cast<int>(task.k), static_cast<int>(a.width - task.k), a.cols.data());
  check_launch("columns of blocks");
  const Buffer<unsigned long long> told(engine, 2);  // the first row that is wrong, and the largest weight
  check(cudaMemsetAsync(told.data(), 0xff, sizeof(unsigned long long), engine.stream), "clear device memory");
  check(cudaMemsetAsync(told.data() + 1, 0, sizeof(unsigned long long), engine.stream), "clear device memory");
  launches.run(rows_kernel, modified ? 0.5 : 0.0, modified ? 0.5 : 1.0,
               Output{a.first.data(), a.values.data(), a.width}, told.data(), told.data() + 1);
  unsigned long long wrong = 0;
  to_host(engine, &wrong, told.data(), 1);
  check(cudaMemcpyAsync(&largest, told.data() + 1, sizeof(double), cudaMemcpyDeviceToHost, engine.stream),
        "copy from the device");
  engine.synchronize();
  if (wrong != ~0ULL) {
    throw Failure{ErrorCode::bad_data, "reg: is " + shortest(task.reg) + ", but the neighbors of row " +
                                           std::to_string(wrong) +
                                           " do not determine its weights; a larger share does"};
  }
  return a;
}

}  // namespace vicinal::cuda::lle
