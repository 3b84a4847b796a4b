// Reading, normalizing and packing of queries. See query_batch.hpp.
#include "cpu/nearest/query_batch.hpp"

#include <algorithm>
#include <cstring>
#include <functional>

#include "core/distance.hpp"
#include "core/parallel.hpp"
#include "core/table_access.hpp"
#include "cpu/nearest/packed_table.hpp"

namespace vicinal::cpu {

QueryBatch::QueryBatch(const kernels::NearestTask& task, const SimdKernels& simd, std::span<const Screen> screens)
    : task_(task),
      simd_(simd),
      screens_(screens),
      d_(task.queries.cols()),
      padded_d_((d_ + 7) / 8 * 8),
      packed_(screens.size()) {
  if (!screens.empty() && screens[0].finer() != nullptr) {
    finer_bytes_ = FinerTerms::image_bytes(screens[0].finer()->columns());
  }
}

std::uint64_t QueryBatch::bytes_a_query(const kernels::NearestTask& task, std::span<const ScreenType> screens) {
  const std::int64_t d = task.queries.cols();
  std::uint64_t bytes = static_cast<std::uint64_t>((d + 7) / 8 * 64 + 1);
  for (const ScreenType screen : screens) {
    bytes += static_cast<std::uint64_t>(Screen::row_bytes(screen, d)) + sizeof(QueryTerms);
  }
  if (task.pruned) bytes += static_cast<std::uint64_t>(FinerTerms::image_bytes(d)) + sizeof(QueryTerms);
  return bytes;
}

void QueryBatch::load(const Context& ctx, std::int64_t begin, std::int64_t end) {
  begin_ = begin;
  end_ = end;
  const std::int64_t width = simd_.tile_queries;
  wide_.reserve(size() * padded_d_);
  zero_.assign(static_cast<std::size_t>(size()), 0);
  for (std::size_t s = 0; s < screens_.size(); ++s) {
    packed_[s].row_bytes = screens_[s].row_bytes();
    packed_[s].panels.reserve(tiles() * width * packed_[s].row_bytes);
    packed_[s].terms.resize(static_cast<std::size_t>(size()));
  }
  finer_.reserve(size() * finer_bytes_);
  if (finer_bytes_ > 0) finer_terms_.resize(static_cast<std::size_t>(size()));
  std::vector<double> block;  // a block source is asked once, here, on the calling thread
  if (task_.queries.is_block_source()) {
    block.resize(static_cast<std::size_t>(size() * d_));
    core::widen_rows(task_.queries, begin, end, block.data());
  }
  const auto load_tile = [&](std::int64_t tile, int /*worker*/) {
    const std::int64_t first = tile * width;
    const std::int64_t last = std::min(size(), first + width);
    for (std::int64_t i = first; i < last; ++i) {
      double* row = wide_.data() + i * padded_d_;
      if (block.empty()) {
        core::widen_rows(task_.queries, begin + i, begin + i + 1, row);
      } else {
        std::copy_n(block.data() + i * d_, d_, row);
      }
      std::fill(row + d_, row + padded_d_, 0.0);
      if (task_.metric == Metric::cosine) zero_[i] = core::normalize_row(row, d_, row) ? 0 : 1;
    }
    for (std::size_t s = 0; s < screens_.size(); ++s) {
      PackedQueries& packed = packed_[s];
      std::byte* panel = packed.panels.data() + first * packed.row_bytes;
      for (std::int64_t i = first; i < last; ++i) {
        packed.terms[i] =
            screens_[s].query_terms(screens_[s].pack(row(i), Screen::Side::query, panel, i - first, width));
        // A query of zeros is at cosine distance 1 from everything: no product says so.
        if (zero_[i] != 0) packed.terms[i].usable = false;
      }
      for (std::int64_t i = last; i < first + width; ++i) screens_[s].pack_nothing(panel, i - first, width);
    }
    for (std::int64_t i = first; i < last && finer_bytes_ > 0; ++i) pack_finer(i);
  };
  core::parallel_for(ctx, tiles(), std::cref(load_tile));  // a reference: nothing is allocated
}

void QueryBatch::pack_finer(std::int64_t i) {
  const Screen& screen = *screens_[0].finer();
  std::byte* const image = finer_.data() + i * finer_bytes_;
  std::memset(image, 0, static_cast<std::size_t>(finer_bytes_));
  finer_terms_[i] = screen.query_terms(screen.pack(row(i), Screen::Side::query, image, 0, 1));
  if (zero_[i] != 0) finer_terms_[i].usable = false;
}

}  // namespace vicinal::cpu
