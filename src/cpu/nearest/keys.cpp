// Which kernel makes the sums of a metric, and what becomes of them. See keys.hpp.
#include "cpu/nearest/keys.hpp"

#include <string>

#include "core/distance.hpp"

namespace vicinal::cpu {

PairKeys::PairKeys(const Context& ctx, const kernels::NearestTask& task, const Candidates& candidates)
    : ctx_(ctx),
      task_(task),
      candidates_(candidates),
      simd_(simd_kernels(ctx.isa())),
      element_(RowReading::of(task.index->table, task.metric).element),
      d_(task.queries.cols()) {}

void PairKeys::sums(const double* x, const void* const* rows, std::int64_t count, double* out) const {
  const auto element = static_cast<int>(element_);
  switch (task_.metric) {
    case Metric::euclidean:
    case Metric::sqeuclidean:
    case Metric::cosine:
      return simd_.keys[static_cast<int>(KeyOp::squares)][element](x, rows, count, d_, out);
    case Metric::inner_product:
      return simd_.keys[static_cast<int>(KeyOp::products)][element](x, rows, count, d_, out);
    case Metric::manhattan:
      return simd_.keys[static_cast<int>(KeyOp::absolutes)][element](x, rows, count, d_, out);
    case Metric::chebyshev:
      return simd_.keys[static_cast<int>(KeyOp::maximum)][element](x, rows, count, d_, out);
    case Metric::hamming:
      return simd_.keys[static_cast<int>(KeyOp::differing)][element](x, rows, count, d_, out);
    case Metric::minkowski:
      for (std::int64_t s = 0; s < count; ++s) {
        ctx_.check_cancelled();  // a power costs a hundred products
        out[s] = core::minkowski_key(x, static_cast<const double*>(rows[s]), d_, task_.p);
      }
      return;
  }
}

double PairKeys::key_of(double sum, bool zero) const noexcept {
  switch (task_.metric) {
    case Metric::cosine:
      return zero ? 1.0 : 0.5 * sum;
    case Metric::inner_product:
      return 0.0 - sum;
    case Metric::hamming:
      return sum / static_cast<double>(d_);
    default:
      return sum;
  }
}

void PairKeys::refuse_overflow(std::int64_t query, std::int64_t distinct) const {
  for (const std::int64_t id : candidates_.members(distinct)) {
    if (!candidates_.eligible(query, id)) continue;
    throw Error(ErrorCode::bad_data, "the distance of query row " + std::to_string(task_.first_query + query) +
                                         " and table row " + std::to_string(task_.first_id + id) +
                                         " overflows float64; scale the data down");
  }
}

}  // namespace vicinal::cpu
