// Bitonic sort (the GS paper, for large k): the vector, padded to a power of two, goes through a fixed network of
// comparators, so that what it costs does not depend on k. Cost: n log2(n) (log2(n) + 1) / 4 comparisons.
#include <bit>
#include <limits>
#include <utility>

#include "cpu/nearest/papers/product.hpp"

namespace vicinal::cpu::papers {
namespace {

constexpr float kLast = -std::numeric_limits<float>::infinity();

}  // namespace

BitonicSort::BitonicSort(const Context& ctx, const float* scores, std::int64_t n, Scratch& scratch) {
  const auto size = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(n)));
  scratch.ranked.assign(static_cast<std::size_t>(size), {kLast, -1});
  Ranked* values = scratch.ranked.data();
  for (std::int64_t row = 0; row < n; ++row) values[row] = {scores[row], row};
  for (std::int64_t sorted = 2; sorted <= size; sorted *= 2) {
    for (std::int64_t stride = sorted / 2; stride > 0; stride /= 2) {
      ctx.check_cancelled();
      for (std::int64_t begin = 0; begin < size; begin += 2 * stride) {
        // Stretches of `sorted` elements descend and ascend by turns, the last one descends.
        const bool descends = (begin & sorted) == 0;
        for (std::int64_t i = begin; i < begin + stride; ++i) {
          const bool ascends = values[i].score < values[i + stride].score;
          if (ascends == descends) std::swap(values[i], values[i + stride]);
        }
      }
    }
  }
  next_ = values;
  end_ = values + n;
}

bool BitonicSort::next(Ranked& best) {
  if (next_ == end_ || next_->score == kLast) return false;
  best = *next_++;
  return true;
}

}  // namespace vicinal::cpu::papers
