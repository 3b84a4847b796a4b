// The function of barycentre_kernels.hpp, written once; included after kernels_inl.hpp, whose rules hold here too.

#include "simd/barycentre_kernels.hpp"

HWY_BEFORE_NAMESPACE();
namespace vicinal::cpu {
namespace VICINAL_SIMD_NAMESPACE {

namespace barycentre {

using Lanes = hn::CappedTag<double, kBarycentreRows>;
using Vec = hn::Vec<Lanes>;

/// Vectors of lanes that are kBarycentreRows numbers apart.
template <class T>
class Strided {
 public:
  explicit Strided(T* first) : first_(first) {}
  HWY_INLINE Vec operator[](std::int64_t i) const { return hn::LoadU(Lanes(), first_ + i * kBarycentreRows); }
  HWY_INLINE void set(std::int64_t i, Vec value) const { hn::StoreU(value, Lanes(), first_ + i * kBarycentreRows); }

 private:
  T* first_;
};

HWY_INLINE Vec less_product(Vec from, Vec a, Vec b) {
  return hn::Sub(from, hn::Mul(a, b));
}

// One vector of lanes, from `lane` on.
inline bool of_lanes(const BarycentreTask& task, std::int64_t lane) {
  const Lanes lanes;
  const std::int64_t k = task.k;
  const std::int64_t d = task.d;
  const Strided<const double> differences(task.differences + lane);
  const Strided<double> gram(task.gram + lane);
  const Strided<double> weights(task.weights + lane);
  const Vec zero = hn::Zero(lanes);
  Vec trace = zero;
  for (std::int64_t i = 0; i < k; ++i) {
    for (std::int64_t j = 0; j <= i; ++j) {
      Vec sum = zero;
      for (std::int64_t c = 0; c < d; ++c) sum = hn::Add(sum, hn::Mul(differences[i * d + c], differences[j * d + c]));
      gram.set(i * k + j, sum);
      if (i == j) trace = hn::Add(trace, sum);
    }
  }
  const Vec reg = hn::Set(lanes, task.reg);
  const Vec added = hn::IfThenElse(hn::Gt(trace, zero), hn::Mul(reg, trace), reg);
  auto determined = hn::Eq(zero, zero);
  for (std::int64_t i = 0; i < k; ++i) {
    gram.set(i * k + i, hn::Add(gram[i * k + i], added));
    for (std::int64_t j = 0; j <= i; ++j) {
      Vec sum = gram[i * k + j];
      for (std::int64_t c = 0; c < j; ++c) sum = less_product(sum, gram[i * k + c], gram[j * k + c]);
      if (i > j) {
        gram.set(i * k + j, hn::Div(sum, gram[j * k + j]));
      } else {
        determined = hn::And(determined, hn::Gt(sum, zero));
        gram.set(i * k + i, hn::Sqrt(sum));
      }
    }
  }
  for (std::int64_t i = 0; i < k; ++i) {
    Vec sum = hn::Set(lanes, 1);
    for (std::int64_t j = 0; j < i; ++j) sum = less_product(sum, gram[i * k + j], weights[j]);
    weights.set(i, hn::Div(sum, gram[i * k + i]));
  }
  Vec total = zero;
  for (std::int64_t i = k - 1; i >= 0; --i) {
    Vec sum = weights[i];
    for (std::int64_t j = i + 1; j < k; ++j) sum = less_product(sum, gram[j * k + i], weights[j]);
    const Vec weight = hn::Div(sum, gram[i * k + i]);
    weights.set(i, weight);
    total = hn::Add(total, weight);
  }
  for (std::int64_t i = 0; i < k; ++i) weights.set(i, hn::Div(weights[i], total));
  determined = hn::And(determined, hn::And(hn::IsFinite(total), hn::Gt(total, zero)));
  return hn::AllTrue(lanes, determined);
}

inline bool of_rows(const BarycentreTask& task) {
  bool determined = true;
  for (std::int64_t lane = 0; lane < kBarycentreRows; lane += static_cast<std::int64_t>(hn::MaxLanes(Lanes()))) {
    determined = of_lanes(task, lane) && determined;
  }
  return determined;
}

}  // namespace barycentre

}  // namespace VICINAL_SIMD_NAMESPACE
}  // namespace vicinal::cpu
HWY_AFTER_NAMESPACE();
