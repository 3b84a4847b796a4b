// See csr.hpp. A row is one worker's, its sum in the order of its entries.
#include "solver/csr.hpp"

#include <algorithm>

#include "core/parallel.hpp"
#include "simd/sparse_kernels.hpp"

namespace vicinal::solver {
namespace {

constexpr std::int64_t kProductRows = 1024;  // a task

}  // namespace

Csr csr_of(const LocalRows& a) {
  Csr csr;
  csr.cols = a.points;
  csr.values = a.values;
  csr.first.resize(static_cast<std::size_t>(a.rows()) + 1);
  for (std::int64_t r = 0; r <= a.rows(); ++r) csr.first[r] = r * a.width;
  csr.index.reserve(a.values.size());
  for (Point i = 0; i < a.points; ++i) {
    const auto cols = a.cols.begin() + i * a.width;
    for (std::int64_t r = a.first[i]; r < a.first[i + 1]; ++r) csr.index.insert(csr.index.end(), cols, cols + a.width);
  }
  return csr;
}

Csr transposed(const Csr& a) {
  Csr t;
  t.cols = a.rows();
  t.first.assign(static_cast<std::size_t>(a.cols) + 1, 0);
  t.index.resize(a.index.size());
  t.values.resize(a.values.size());
  for (const Point col : a.index) ++t.first[static_cast<std::size_t>(col) + 1];
  for (std::int64_t i = 0; i < a.cols; ++i) t.first[i + 1] += t.first[i];
  std::vector<std::int64_t> next(t.first.begin(), t.first.end() - 1);
  for (std::int64_t r = 0; r < a.rows(); ++r) {
    for (std::int64_t e = a.first[r]; e < a.first[r + 1]; ++e) {
      const std::int64_t to = next[a.index[e]]++;
      t.index[to] = static_cast<Point>(r);
      t.values[to] = a.values[e];
    }
  }
  return t;
}

std::uint64_t csr_bytes(const LocalRows& a) {
  const auto entries = static_cast<std::uint64_t>(a.values.size());
  const auto firsts = static_cast<std::uint64_t>(a.rows() + a.points + 2);
  return 2 * entries * (sizeof(double) + sizeof(Point)) + firsts * sizeof(std::int64_t);
}

void multiply(const Context& ctx, const Csr& a, const Vectors& x, const Combination& combination, Vectors& y) {
  const cpu::SparseKernels& kernels = cpu::sparse_kernels(ctx.isa());
  const std::int64_t rows = a.rows();
  core::parallel_for(ctx, (rows + kProductRows - 1) / kProductRows, [&](std::int64_t task, int /*worker*/) {
    const std::int64_t begin = task * kProductRows;
    const std::int64_t end = std::min(rows, begin + kProductRows);
    const double* also = combination.also_x == nullptr ? nullptr : combination.also_x->row(begin);
    kernels.product({a.first.data() + begin, a.index.data(), a.values.data(), end - begin, x.width, combination.scale,
                     combination.also, combination.own},
                    x.values.data(), also, y.row(begin));
  });
}

}  // namespace vicinal::solver
