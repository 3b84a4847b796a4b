// Rows, queries and keys of the papers' methods. See workspace.hpp.
#include "cpu/nearest/papers/workspace.hpp"

#include <algorithm>
#include <cmath>

#include "core/infinity.hpp"
#include "core/parallel.hpp"

namespace vicinal::cpu::papers {
namespace {

constexpr std::int64_t kRowsAtATime = 64;

kernels::NearestTask with_index(kernels::NearestTask task, const kernels::Prepared& index) {
  task.index = &index;
  return task;
}

kernels::Prepared without_groups(const kernels::Prepared& from) {
  kernels::Prepared index;
  index.table = from.table;
  index.centre = from.centre;
  index.largest = from.largest;
  return index;
}

}  // namespace

Workspace::Workspace(const Context& ctx, const kernels::NearestTask& task, std::vector<Screen> screens)
    : ctx_(ctx),
      index_(without_groups(*task.index)),
      task_(with_index(task, index_)),
      simd_(simd_kernels(ctx.isa())),
      screens_(std::move(screens)),
      candidates_(task_),
      pair_keys_(ctx, task_, candidates_),
      rows_(task_, simd_, index_.table.rows(), screens_),
      batch_(task_, simd_, screens_) {
  rows_.assign(0, n());
  rows_.reserve_rows();
  for (std::size_t s = 0; s < screens_.size(); ++s) rows_.begin_packing(s, nullptr);
  std::vector<std::vector<double>> scratch(static_cast<std::size_t>(ctx.threads()));
  core::parallel_for(ctx, rows_.panels(), [&](std::int64_t panel, int worker) {
    std::vector<double>& row = scratch[static_cast<std::size_t>(worker)];
    rows_.prepare_panel(panel, row);
    for (std::size_t s = 0; s < screens_.size(); ++s) rows_.pack_panel(panel, s, row);
  });
  for (std::size_t s = 0; s < screens_.size(); ++s) rows_.finish_packing(s);
}

std::int64_t Workspace::group(std::int64_t n, std::int64_t most) {
  return std::clamp<std::int64_t>((std::int64_t{1} << 20) / n, 1, most);
}

double Workspace::key(std::int64_t i, std::int64_t row) const {
  double sum = 0;
  pair_keys_.sums(batch_.row(i), rows_.rows() + row, 1, &sum);
  const double key = pair_keys_.key_of(sum, batch_.is_zero(i) || rows_.is_zero(row));
  if (!(std::fabs(key) < kInfinity)) pair_keys_.refuse_overflow(batch_.begin() + i, row);
  ranked_.fetch_add(1, std::memory_order_relaxed);
  return key;
}

void Workspace::keys_of_tile(std::int64_t first, std::int64_t count, std::int64_t begin, std::int64_t rows,
                             double* keys) const {
  for (std::int64_t stretch = 0; stretch < rows; stretch += kRowsAtATime) {
    const std::int64_t size = std::min(kRowsAtATime, rows - stretch);
    for (std::int64_t q = 0; q < count; ++q) {
      ctx_.check_cancelled();
      const std::int64_t i = first + q;
      double* out = keys + q * rows + stretch;
      pair_keys_.sums(batch_.row(i), rows_.rows() + begin + stretch, size, out);
      for (std::int64_t r = 0; r < size; ++r) {
        const std::int64_t row = begin + stretch + r;
        if (!eligible(i, row)) {
          out[r] = kInfinity;
          continue;
        }
        out[r] = pair_keys_.key_of(out[r], batch_.is_zero(i) || rows_.is_zero(row));
        if (!(std::fabs(out[r]) < kInfinity)) pair_keys_.refuse_overflow(batch_.begin() + i, row);
      }
    }
  }
  ranked_.fetch_add(count * rows, std::memory_order_relaxed);
}

}  // namespace vicinal::cpu::papers
