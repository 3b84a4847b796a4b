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
namespace {

constexpr std::int64_t kApart = 64;

}  // namespace

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
  const auto load_one = [&](std::int64_t i) {
    double* row = wide_.data() + i * padded_d_;
    if (block.empty()) {
      core::widen_rows(task_.queries, begin + i, begin + i + 1, row);
    } else {
      std::copy_n(block.data() + i * d_, d_, row);
    }
    std::fill(row + d_, row + padded_d_, 0.0);
    if (task_.metric == Metric::cosine) zero_[i] = core::normalize_row(row, d_, row) ? 0 : 1;
    const std::int64_t lane = i % width;
    for (std::size_t s = 0; s < screens_.size(); ++s) {
      PackedQueries& packed = packed_[s];
      std::byte* panel = packed.panels.data() + (i - lane) * packed.row_bytes;
      packed.terms[i] = screens_[s].query_terms(screens_[s].pack(row, Screen::Side::query, panel, lane, width));
      // A query of zeros is at cosine distance 1 from everything: no product says so.
      if (zero_[i] != 0) packed.terms[i].usable = false;
    }
    if (finer_bytes_ > 0) pack_finer(i);
  };
  for (std::int64_t i = size(); i < tiles() * width; ++i) {
    for (std::size_t s = 0; s < screens_.size(); ++s) {
      std::byte* const panel = packed_[s].panels.data() + (tiles() - 1) * width * packed_[s].row_bytes;
      screens_[s].pack_nothing(panel, i % width, width);
    }
  }
  const std::int64_t step = size() <= kApart ? 1 : width;  // of few queries, each may be another worker's
  const auto load_some = [&](std::int64_t task, int /*worker*/) {
    for (std::int64_t i = task * step; i < std::min(size(), (task + 1) * step); ++i) load_one(i);
  };
  core::parallel_for(ctx, (size() + step - 1) / step, std::cref(load_some));  // a reference: nothing is allocated
}

void QueryBatch::pack_finer(std::int64_t i) {
  const Screen& screen = *screens_[0].finer();
  std::byte* const image = finer_.data() + i * finer_bytes_;
  std::memset(image, 0, static_cast<std::size_t>(finer_bytes_));
  finer_terms_[i] = screen.query_terms(screen.pack(row(i), Screen::Side::query, image, 0, 1));
  if (zero_[i] != 0) finer_terms_[i].usable = false;
}

}  // namespace vicinal::cpu
