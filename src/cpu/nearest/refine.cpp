// How survivors of a screen of images are judged by their finer images (search.hpp, screen.hpp). A finer image is one
// or a few cache lines, a row of the table many, and most of what few columns leave is dropped.
#include <algorithm>
#include <cstddef>

#include "cpu/nearest/search.hpp"

namespace vicinal::cpu {

// The survivors of a tile that has met the block in the first screen.
void Search::refine_tile(Pass& pass, const QueryBatch& batch, const RowBlock& block, std::int64_t tile,
                         std::int64_t slot, WorkerScratch& scratch) {
  const std::int64_t capacity = std::max(sizes_.block, sizes_.sample);
  pass.climbs[tile].refined = 0;
  for (std::int64_t q = 0; q < queries_of(batch, tile); ++q) {
    const std::int64_t at = slot * simd_.tile_queries + q;
    std::int32_t& count = scratch.counts[at];
    Survivor* const survivors = scratch.survivors.data() + at * capacity;
    pass.climbs[tile].refined += count;
    count = static_cast<std::int32_t>(refine(pass, batch, block, tile * simd_.tile_queries + q, survivors, count));
  }
}

// Keeps the survivors of query first + i that their finer images leave, too, with the scores of these. Rows whose
// images are not ready stay as they are.
std::int64_t Search::refine(const Pass& pass, const QueryBatch& batch, const RowBlock& block, std::int64_t i,
                            Survivor* survivors, std::int64_t count) const {
  const QueryTerms& query = batch.finer_terms(i);
  if (!query.usable) return count;
  const Screen& screen = *ladder_[0].finer();
  const double norm = block.packed(0).typical_norm * (screen.scale() / ladder_[0].scale());
  const Threshold now = limit_of(screen, query, limit(batch, i, *pass.collector), norm);
  const std::int64_t bytes = finer_->finer_bytes();
  const std::byte* images[kKeyChunk];
  std::int32_t sums[kKeyChunk];
  const auto fetch = [&](std::int64_t at) {
    const std::byte* const image = finer_->finer(block.distinct(survivors[at].row));
    for (std::int64_t byte = 0; image != nullptr && byte < bytes; byte += 64) __builtin_prefetch(image + byte);
  };
  for (std::int64_t at = 0; at < std::min(count, kKeyChunk); ++at) fetch(at);
  std::int64_t kept = 0;
  for (std::int64_t begin = 0; begin < count; begin += kKeyChunk) {
    const std::int64_t size = std::min(kKeyChunk, count - begin);
    for (std::int64_t at = begin + kKeyChunk; at < std::min(count, begin + 2 * kKeyChunk); ++at) fetch(at);
    for (std::int64_t s = 0; s < size; ++s) {
      const std::byte* const image = finer_->finer(block.distinct(survivors[begin + s].row));
      images[s] = image != nullptr ? image : batch.finer(i);
    }
    simd_.byte_products(batch.finer(i), images, size, bytes, sums);
    for (std::int64_t s = 0; s < size; ++s) {
      Survivor survivor = survivors[begin + s];
      if (images[s] != batch.finer(i)) {
        const FinerTerms terms = FinerTerms::of(images[s], bytes);
        const auto sum =
            static_cast<std::int32_t>(static_cast<std::uint32_t>(sums[s]) + static_cast<std::uint32_t>(terms.base));
        if (is_dropped_alone(sum, terms.rho, terms.kappa, now)) continue;
        survivor.score = static_cast<float>(sum);
      }
      if (single_rows_ && !waits_ && block.borrows()) fetch_row(block, survivor.row);
      survivors[kept++] = survivor;
    }
  }
  return kept;
}

}  // namespace vicinal::cpu
