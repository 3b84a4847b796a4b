// Reading, normalising and packing of queries. See query_batch.hpp.
#include "cpu/query_batch.hpp"

#include <algorithm>

#include "core/distance.hpp"
#include "core/parallel.hpp"
#include "core/table_access.hpp"

namespace vicinal::cpu {

QueryBatch::QueryBatch(const kernels::NearestTask& task, const SimdKernels& simd, const Screen* screen,
                       const double* centre)
    : task_(task),
      simd_(simd),
      screen_(screen),
      centre_(centre),
      d_(task.queries.cols()),
      padded_d_((d_ + 7) / 8 * 8) {}

std::uint64_t QueryBatch::bytes_a_query(const kernels::NearestTask& task, bool screened) {
  const auto d = static_cast<std::uint64_t>(task.queries.cols());
  return (d + 7) / 8 * 64 + (screened ? d * 4 : 0) + sizeof(QueryTerms) + 1;
}

void QueryBatch::load(const Context& ctx, std::int64_t begin, std::int64_t end) {
  begin_ = begin;
  end_ = end;
  const std::int64_t width = simd_.tile_queries;
  const std::int64_t panels = (size() + width - 1) / width;
  wide_.reserve(size() * padded_d_);
  zero_.assign(static_cast<std::size_t>(size()), 0);
  if (screen_ != nullptr) {
    packed_.reserve(panels * width * d_);
    terms_.resize(static_cast<std::size_t>(size()));
  }
  std::vector<double> block;  // a block source is asked once, here, on the calling thread
  if (task_.queries.is_block_source()) {
    block.resize(static_cast<std::size_t>(size() * d_));
    core::widen_rows(task_.queries, begin, end, block.data());
  }
  core::parallel_for(ctx, panels, [&](std::int64_t p, int /*worker*/) {
    float* packed = screen_ != nullptr ? packed_.data() + p * width * d_ : nullptr;
    const std::int64_t last = std::min(size(), (p + 1) * width);
    for (std::int64_t i = p * width; i < last; ++i) {
      double* row = wide_.data() + i * padded_d_;
      if (block.empty()) {
        core::widen_rows(task_.queries, begin + i, begin + i + 1, row);
      } else {
        std::copy_n(block.data() + i * d_, d_, row);
      }
      std::fill(row + d_, row + padded_d_, 0.0);
      if (task_.metric == Metric::cosine) zero_[i] = core::normalize_row(row, d_, row) ? 0 : 1;
      if (screen_ == nullptr) continue;
      terms_[i] = screen_->query_terms(round_row(row, centre_, screen_->scale(), d_, packed + i % width, width));
      // A query of zeros is at cosine distance 1 from everything: no product says so.
      if (zero_[i] != 0) terms_[i].usable = false;
    }
    if (screen_ == nullptr) return;
    for (std::int64_t i = last; i < (p + 1) * width; ++i) {
      for (std::int64_t j = 0; j < d_; ++j) packed[j * width + i % width] = 0;
    }
  });
}

}  // namespace vicinal::cpu
