// See tall.hpp. Sums over rows: a warp has a fixed part of them, and the parts are added by a tree of fixed shape.
// Triangles: a warp folds its part strip by strip (Householder; Demmel et al. 2012, communication-avoiding QR), a
// second round folds the parts' triangles, and the host the last few. Bytes moved: each set of vectors once.
#include <algorithm>
#include <vector>

#include "cuda/base/fold.cuh"
#include "cuda/base/shared_memory.hpp"
#include "cuda/lle/tall.hpp"
#include "formulas/lle/start.hpp"

namespace vicinal::cuda::lle {
namespace {

constexpr std::int64_t kParts = 2048;   // of a sum or a triangle
constexpr std::int64_t kPartRows = 64;  // of a part, at least
constexpr int kSums = 8;                // numbers of a product that a lane adds at a time
constexpr int kStrip = 32;              // rows folded into a triangle at a time
constexpr std::int64_t kMaxWarps = 4;   // of a block

struct Tall {
  const double* values;
  std::int64_t rows;
  std::int64_t width;

  explicit Tall(const DeviceVectors& x) : values(x.data()), rows(x.rows), width(x.width) {}
};

std::int64_t parts_of(std::int64_t rows) {
  return std::min(kParts, (rows + kPartRows - 1) / kPartRows);
}

__global__ void first_kernel(std::int64_t count, std::int64_t width, double* x) {
  const std::int64_t at = own_number();
  if (at < count) x[at] = solver::first_entry(at / width, at % width);
}

/// sums[part, x.width * y.width] of x'y; x without values: ones.
__global__ void inner_kernel(Tall x, Tall y, std::int64_t parts, double* sums) {
  const std::int64_t part = own_number() / 32;
  if (part >= parts) return;
  const int lane = static_cast<int>(threadIdx.x) & 31;
  const std::int64_t entries = x.width * y.width;
  const std::int64_t begin = y.rows * part / parts;
  const std::int64_t end = y.rows * (part + 1) / parts;
  for (std::int64_t from = 0; from < entries; from += kSums * 32) {
    double sum[kSums] = {};
    int left[kSums];
    int right[kSums];
    for (int t = 0; t < kSums; ++t) {
      const std::int64_t entry = min(from + 32 * t + lane, entries - 1);
      left[t] = static_cast<int>(entry / y.width);
      right[t] = static_cast<int>(entry % y.width);
    }
    const int rounds = static_cast<int>(min(static_cast<std::int64_t>(kSums), (entries - from + 31) / 32));
    for (std::int64_t i = begin; i < end; ++i) {
      const double* const a = x.values + i * x.width;
      const double* const b = y.values + i * y.width;
#pragma unroll
      for (int t = 0; t < kSums; ++t) {
        if (t < rounds) sum[t] += (x.values != nullptr ? a[left[t]] : 1.0) * b[right[t]];
      }
    }
    for (int t = 0; t < kSums; ++t) {
      const std::int64_t entry = from + 32 * t + lane;
      if (entry < entries) sums[part * entries + entry] = sum[t];
    }
  }
}

/// product[entry]: the sum of the parts'. A block an entry.
__global__ void add_parts_kernel(const double* sums, std::int64_t parts, std::int64_t entries, double* product) {
  __shared__ double tree[kThreads];
  const std::int64_t entry = blockIdx.x;
  double sum = 0;
  for (std::int64_t part = threadIdx.x; part < parts; part += kThreads) sum += sums[part * entries + entry];
  tree[threadIdx.x] = sum;
  for (int half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (static_cast<int>(threadIdx.x) < half) tree[threadIdx.x] += tree[threadIdx.x + half];
  }
  if (threadIdx.x == 0) product[entry] = tree[0];
}

/// y = base - x c, or x c where there is no base.
__global__ void product_kernel(Tall x, const double* __restrict__ c, std::int64_t width, const double* base,
                               double* y) {
  const std::int64_t at = own_number();
  if (at >= x.rows * width) return;
  const std::int64_t i = at / width;
  const std::int64_t j = at - i * width;
  double sum = 0;
  for (std::int64_t r = 0; r < x.width; ++r) sum += x.values[i * x.width + r] * c[r * width + j];
  y[at] = base != nullptr ? base[at] - sum : sum;
}

__global__ void less_means_kernel(double* x, std::int64_t rows, std::int64_t width, const double* sums) {
  const std::int64_t at = own_number();
  if (at < rows * width) x[at] -= sums[at % width] / static_cast<double>(rows);
}

__global__ void scaled_kernel(Tall x, const double* s, double* y) {
  const std::int64_t at = own_number();
  if (at >= x.rows * x.width) return;
  const double value = s[at % x.width];
  y[at] -= value * value * x.values[at];
}

__global__ void beside_kernel(Tall x, Tall y, double* both) {
  const std::int64_t at = own_number();
  const std::int64_t width = x.width + y.width;
  if (at >= x.rows * width) return;
  const std::int64_t i = at / width;
  const std::int64_t j = at - i * width;
  both[at] = j < x.width ? x.values[i * x.width + j] : y.values[i * y.width + j - x.width];
}

extern __shared__ double tall_shared[];

struct BlockRows {
  const std::int32_t* cols = nullptr;
  const std::int32_t* owner = nullptr;
  const double* values = nullptr;
  std::int64_t width = 0;
};

/// triangles[part, q, q] of the rows of x, or of A x: a warp a part.
__global__ void triangle_kernel(Tall x, BlockRows a, std::int64_t rows, std::int64_t parts, double* triangles) {
  const std::int64_t part = own_number() / 32;
  if (part >= parts) return;
  const int lane = static_cast<int>(threadIdx.x) & 31;
  const int q = static_cast<int>(x.width);
  double* const r = tall_shared + static_cast<std::int64_t>(threadIdx.x / 32) * (q + kStrip) * q;
  double* const strip = r + q * q;
  for (int at = lane; at < q * q; at += 32) r[at] = 0;
  const std::int64_t end = rows * (part + 1) / parts;
  for (std::int64_t begin = rows * part / parts; begin < end; begin += kStrip) {
    const int count = static_cast<int>(min(static_cast<std::int64_t>(kStrip), end - begin));
    __syncwarp();
    for (int at = lane; at < count * q; at += 32) {
      const int i = at / q;
      const int c = at - i * q;
      if (a.values == nullptr) {
        strip[at] = x.values[(begin + i) * q + c];
        continue;
      }
      const std::int32_t* const cols = a.cols + a.owner[begin + i] * a.width;
      const double* const values = a.values + (begin + i) * a.width;
      double sum = 0;
      for (std::int64_t j = 0; j < a.width; ++j)
        sum += values[j] * x.values[static_cast<std::int64_t>(cols[j]) * q + c];
      strip[at] = sum;
    }
    __syncwarp();
    fold(r, strip, count, q);
  }
  for (int at = lane; at < q * q; at += 32) triangles[part * q * q + at] = r[at];
}

/// The sums of x'y in device memory; x null: of y's columns.
Buffer<double> inner_on_device(const Engine& engine, const DeviceVectors* x, const DeviceVectors& y) {
  const std::int64_t parts = parts_of(y.rows);
  Tall left(y);
  left.values = nullptr;
  left.width = 1;
  if (x != nullptr) left = Tall(*x);
  const std::int64_t entries = left.width * y.width;
  const Buffer<double> sums(engine, parts * entries);
  inner_kernel<<<blocks_for(parts * 32, kThreads), kThreads, 0, engine.stream>>>(left, Tall(y), parts, sums.data());
  check_launch("a product of tall matrices");
  Buffer<double> product(engine, entries);
  add_parts_kernel<<<static_cast<unsigned>(entries), kThreads, 0, engine.stream>>>(sums.data(), parts, entries,
                                                                                   product.data());
  check_launch("a sum of parts");
  return product;
}

std::size_t triangle_bytes(std::int64_t width) {
  return static_cast<std::size_t>((width + kStrip) * width) * sizeof(double);
}

Buffer<double> fold_parts(const Engine& engine, const Tall& x, const BlockRows& a, std::int64_t rows,
                          std::int64_t parts) {
  const std::size_t each = triangle_bytes(x.width);
  const std::int64_t warps =
      std::clamp<std::int64_t>(static_cast<std::int64_t>(engine.shared_memory / each), 1, kMaxWarps);
  allow_shared_memory(engine, triangle_kernel, each * static_cast<std::size_t>(warps));
  Buffer<double> triangles(engine, parts * x.width * x.width);
  triangle_kernel<<<blocks_for(parts, warps), static_cast<unsigned>(warps * 32), each* static_cast<std::size_t>(warps),
                    engine.stream>>>(x, a, rows, parts, triangles.data());
  check_launch("triangles of tall matrices");
  return triangles;
}

}  // namespace

std::int64_t widest_triangle(const Engine& engine) {
  std::int64_t width = 1;
  while (triangle_bytes(width + 1) <= engine.shared_memory) ++width;
  return width;
}

DeviceVectors first_vectors(const Engine& engine, std::int64_t points, std::int64_t width) {
  DeviceVectors x(engine, points, width);
  first_kernel<<<blocks_for(points * width, kThreads), kThreads, 0, engine.stream>>>(points * width, width, x.data());
  check_launch("first vectors");
  return x;
}

void inner(const Engine& engine, const DeviceVectors& x, const DeviceVectors& y, double* product) {
  const Buffer<double> found = inner_on_device(engine, &x, y);
  to_host(engine, product, found.data(), found.size());
  engine.synchronize();
}

void subtract_product(const Engine& engine, const DeviceVectors& x, const double* c, DeviceVectors& y) {
  const Buffer<double> on_device = uploaded(engine, c, x.width * y.width);
  product_kernel<<<blocks_for(x.rows * y.width, kThreads), kThreads, 0, engine.stream>>>(Tall(x), on_device.data(),
                                                                                         y.width, y.data(), y.data());
  check_launch("a product of tall matrices");
}

DeviceVectors product(const Engine& engine, const DeviceVectors& x, const double* c, std::int64_t width) {
  DeviceVectors y(engine, x.rows, width);
  if (width == 0) return y;
  const Buffer<double> on_device = uploaded(engine, c, x.width * width);
  product_kernel<<<blocks_for(x.rows * width, kThreads), kThreads, 0, engine.stream>>>(Tall(x), on_device.data(), width,
                                                                                       nullptr, y.data());
  check_launch("a product of tall matrices");
  return y;
}

void remove_means(const Engine& engine, DeviceVectors& x) {
  for (int pass = 0; pass < 2; ++pass) {
    const Buffer<double> sums = inner_on_device(engine, nullptr, x);
    less_means_kernel<<<blocks_for(x.rows * x.width, kThreads), kThreads, 0, engine.stream>>>(x.data(), x.rows, x.width,
                                                                                              sums.data());
    check_launch("vectors less their means");
  }
}

void subtract_scaled(const Engine& engine, const DeviceVectors& x, const double* s, DeviceVectors& y) {
  const Buffer<double> on_device = uploaded(engine, s, x.width);
  scaled_kernel<<<blocks_for(x.rows * x.width, kThreads), kThreads, 0, engine.stream>>>(Tall(x), on_device.data(),
                                                                                        y.data());
  check_launch("a gradient");
}

DeviceVectors beside(const Engine& engine, const DeviceVectors& x, const DeviceVectors& y) {
  DeviceVectors both(engine, x.rows, x.width + y.width);
  beside_kernel<<<blocks_for(both.values.size(), kThreads), kThreads, 0, engine.stream>>>(Tall(x), Tall(y),
                                                                                          both.data());
  check_launch("vectors side by side");
  return both;
}

void fetch_columns(const Engine& engine, const DeviceVectors& x, std::int64_t width, double* to) {
  check(cudaMemcpy2DAsync(to, static_cast<std::size_t>(width) * sizeof(double), x.data(),
                          static_cast<std::size_t>(x.width) * sizeof(double),
                          static_cast<std::size_t>(width) * sizeof(double), static_cast<std::size_t>(x.rows),
                          cudaMemcpyDeviceToHost, engine.stream),
        "copy from the device");
  engine.synchronize();
}

void triangles_of(const Engine& engine, const DeviceBlocks* a, const DeviceVectors& x, double* triangles) {
  BlockRows blocks;
  if (a != nullptr) blocks = {a->cols.data(), a->owner.data(), a->values.data(), a->width};
  const std::int64_t rows = a != nullptr ? a->rows : x.rows;
  const std::int64_t parts = parts_of(rows);
  const Buffer<double> first = fold_parts(engine, Tall(x), blocks, rows, parts);
  // The triangles are a tall matrix themselves.
  Tall stacked(x);
  stacked.values = first.data();
  stacked.rows = parts * x.width;
  const Buffer<double> second = fold_parts(engine, stacked, {}, stacked.rows, kTriangles);
  to_host(engine, triangles, second.data(), second.size());
  engine.synchronize();
}

}  // namespace vicinal::cuda::lle
