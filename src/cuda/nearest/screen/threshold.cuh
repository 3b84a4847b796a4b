// From a query's limit to its threshold and spare columns (formulas/nearest/half_screen.hpp; bytes:
// formulas/nearest/byte_screen.hpp), by one thread.
#pragma once

#include "cuda/nearest/screen/pack.hpp"
#include "formulas/nearest/byte_screen.hpp"

namespace vicinal::cuda {

/// The threshold where no answer's key is larger than `key`; and hence a score that is high enough for a row of that
/// key.
__device__ inline float threshold_of(const Quantization::Numbers& frame, const QueryFacts& facts, double key) {
  if (frame.bytes) return core::byte_threshold(frame.metric == Metric::inner_product, facts.row.exact_sq, key);
  // Of a cosine key twice is the squared distance of the normalized rows.
  if (frame.metric == Metric::cosine) key *= 2;
  return core::half_threshold(facts.row, facts.exponent, facts.form, key, frame.d, frame.exponent, frame.beta);
}
/// Below it no row is an answer, as far as is known; for scores made with the query's spare columns as they are.
__device__ inline float current_threshold(const Quantization::Numbers& frame, const QueryFacts& facts) {
  return threshold_of(frame, facts, facts.limit_key);
}

/// Writes the spare columns of row `row` of the tile and returns the threshold. `first`: the form is chosen now.
__device__ inline float renewed_threshold(const Quantization::Numbers& frame, QueryFacts& facts, bool first,
                                          __half* tile, int row) {
  if (frame.bytes) return current_threshold(frame, facts);
  if (!core::half_usable(facts.row, facts.exponent)) return HUGE_VALF;  // left to another method: nothing survives
  if (first && frame.metric == Metric::inner_product) facts.form = core::HalfForm::product;
  if (!(facts.limit_key <= 0x1.fffffffffffffp1023)) return -HUGE_VALF;
  const double key = frame.metric == Metric::cosine ? 2 * facts.limit_key : facts.limit_key;
  const double reach = frame.metric == Metric::inner_product
                           ? 0
                           : core::half_reach(key, frame.d, core::power_of_two(frame.exponent + facts.exponent));
  if (first && facts.form != core::HalfForm::product) {
    const double typical = frame.typical[0] / fmax(frame.typical[1], 1.0) * core::power_of_two(facts.exponent);
    facts.form = core::half_form(reach, typical);
  }
  const int spare_columns = frame.columns - static_cast<int>(core::kSpareColumns);
  if (first) {
    std::uint16_t spare[core::kSpareColumns];
    core::query_columns(facts.row, facts.exponent, facts.form, reach, frame.d, spare);
    for (int i = 0; i < static_cast<int>(core::kSpareColumns); ++i) {
      tile[packed_offset(kQueryTile, row, spare_columns + i)] = __ushort_as_half(spare[i]);
    }
  } else if (facts.form != core::HalfForm::product) {
    tile[packed_offset(kQueryTile, row, spare_columns + 3)] =
        __ushort_as_half(core::reach_column(facts.row, facts.form, reach));
  }
  return current_threshold(frame, facts);
}

}  // namespace vicinal::cuda
