// The loops of sparse_kernels.hpp, written once; included after kernels_inl.hpp, whose rules hold here too. Eight
// columns at a time stay in registers over a row's entries; columns that are left go one by one.

#include "simd/sparse_kernels.hpp"

HWY_BEFORE_NAMESPACE();
namespace vicinal::cpu {
namespace VICINAL_SIMD_NAMESPACE {

namespace sparse {

inline constexpr std::int64_t kGroup = 8;
using Lanes = hn::CappedTag<double, kGroup>;
using Vec = hn::Vec<Lanes>;
constexpr auto kLanes = static_cast<std::int64_t>(hn::MaxLanes(Lanes()));
constexpr std::int64_t kParts = kGroup / kLanes;

inline void product_of_group(const SparseProduct& task, const double* x, const double* also_x, double* out) {
  const Lanes lanes;
  const Vec scale = hn::Set(lanes, task.scale);
  const Vec also = hn::Set(lanes, task.also);
  const Vec own = hn::Set(lanes, task.own);
  for (std::int64_t i = 0; i < task.rows; ++i) {
    Vec sums[kParts];
#pragma GCC unroll 8
    for (std::int64_t p = 0; p < kParts; ++p) sums[p] = hn::Zero(lanes);
    for (std::int64_t e = task.first[i]; e < task.first[i + 1]; ++e) {
      const Vec value = hn::Set(lanes, task.values[e]);
      const double* from = x + static_cast<std::int64_t>(task.index[e]) * task.width;
#pragma GCC unroll 8
      for (std::int64_t p = 0; p < kParts; ++p) {
        sums[p] = hn::MulAdd(value, hn::LoadU(lanes, from + p * kLanes), sums[p]);
      }
    }
#pragma GCC unroll 8
    for (std::int64_t p = 0; p < kParts; ++p) {
      double* to = out + i * task.width + p * kLanes;
      Vec sum = hn::Mul(scale, sums[p]);
      if (task.also != 0) sum = hn::MulAdd(also, hn::LoadU(lanes, also_x + i * task.width + p * kLanes), sum);
      if (task.own != 0) sum = hn::MulAdd(own, hn::LoadU(lanes, to), sum);
      hn::StoreU(sum, lanes, to);
    }
  }
}

inline void product_of_column(const SparseProduct& task, const double* x, const double* also_x, double* out) {
  for (std::int64_t i = 0; i < task.rows; ++i) {
    double sum = 0;
    for (std::int64_t e = task.first[i]; e < task.first[i + 1]; ++e) {
      sum += task.values[e] * x[static_cast<std::int64_t>(task.index[e]) * task.width];
    }
    sum *= task.scale;
    if (task.also != 0) sum += task.also * also_x[i * task.width];
    if (task.own != 0) sum += task.own * out[i * task.width];
    out[i * task.width] = sum;
  }
}

inline void product(const SparseProduct& task, const double* x, const double* also_x, double* out) {
  std::int64_t c = 0;
  for (; c + kGroup <= task.width; c += kGroup) {
    product_of_group(task, x + c, also_x == nullptr ? nullptr : also_x + c, out + c);
  }
  for (; c < task.width; ++c) product_of_column(task, x + c, also_x == nullptr ? nullptr : also_x + c, out + c);
}

inline void inner(const TallPair& pair, const double* x, const double* y, double* sums) {
  const Lanes lanes;
  constexpr std::int64_t kRows = 4;
  for (std::int64_t c = 0; c < pair.y_width; c += kGroup) {
    const bool whole = c + kGroup <= pair.y_width;
    for (std::int64_t r = 0; r < pair.x_width; r += kRows) {
      if (whole && r + kRows <= pair.x_width) {
        Vec total[kRows][kParts];
#pragma GCC unroll 4
        for (std::int64_t k = 0; k < kRows; ++k) {
#pragma GCC unroll 8
          for (std::int64_t p = 0; p < kParts; ++p) total[k][p] = hn::Zero(lanes);
        }
        for (std::int64_t i = 0; i < pair.rows; ++i) {
#pragma GCC unroll 8
          for (std::int64_t p = 0; p < kParts; ++p) {
            const Vec from = hn::LoadU(lanes, y + i * pair.y_width + c + p * kLanes);
#pragma GCC unroll 4
            for (std::int64_t k = 0; k < kRows; ++k) {
              total[k][p] = hn::MulAdd(hn::Set(lanes, x[i * pair.x_width + r + k]), from, total[k][p]);
            }
          }
        }
#pragma GCC unroll 4
        for (std::int64_t k = 0; k < kRows; ++k) {
#pragma GCC unroll 8
          for (std::int64_t p = 0; p < kParts; ++p) {
            double* to = sums + (r + k) * pair.y_width + c + p * kLanes;
            hn::StoreU(hn::Add(hn::LoadU(lanes, to), total[k][p]), lanes, to);
          }
        }
        continue;
      }
      for (std::int64_t k = r; k < r + kRows && k < pair.x_width; ++k) {
        for (std::int64_t j = c; j < c + kGroup && j < pair.y_width; ++j) {
          double sum = 0;
          for (std::int64_t i = 0; i < pair.rows; ++i) sum += x[i * pair.x_width + k] * y[i * pair.y_width + j];
          sums[k * pair.y_width + j] += sum;
        }
      }
    }
  }
}

inline void subtract(const TallPair& pair, const double* x, const double* c, double* y) {
  const Lanes lanes;
  for (std::int64_t i = 0; i < pair.rows; ++i) {
    const double* from = x + i * pair.x_width;
    double* to = y + i * pair.y_width;
    std::int64_t j = 0;
    for (; j + kLanes <= pair.y_width; j += kLanes) {
      Vec sum = hn::LoadU(lanes, to + j);
      for (std::int64_t r = 0; r < pair.x_width; ++r) {
        sum = hn::NegMulAdd(hn::Set(lanes, from[r]), hn::LoadU(lanes, c + r * pair.y_width + j), sum);
      }
      hn::StoreU(sum, lanes, to + j);
    }
    for (; j < pair.y_width; ++j) {
      double sum = to[j];
      for (std::int64_t r = 0; r < pair.x_width; ++r) sum -= from[r] * c[r * pair.y_width + j];
      to[j] = sum;
    }
  }
}

}  // namespace sparse

constexpr SparseKernels make_sparse_kernels() {
  return {sparse::product, sparse::inner, sparse::subtract};
}

}  // namespace VICINAL_SIMD_NAMESPACE
}  // namespace vicinal::cpu
HWY_AFTER_NAMESPACE();
