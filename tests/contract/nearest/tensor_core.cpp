// The model of tensor_core.hpp. Aligned terms are whole numbers of 2^(largest - alignment), below 2^33 in all, so that
// float64 holds every intermediate exactly.
#include "tensor_core.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace vicinal::contract {
namespace {

// The 24 leading bits of a whole number.
std::int64_t cut(std::int64_t sum) {
  auto magnitude = static_cast<std::uint64_t>(std::llabs(sum));
  const int surplus = std::max(0, static_cast<int>(std::bit_width(magnitude)) - 24);
  magnitude = magnitude >> surplus << surplus;
  return sum < 0 ? -static_cast<std::int64_t>(magnitude) : static_cast<std::int64_t>(magnitude);
}

}  // namespace

Operand::Operand(std::span<const std::uint16_t> halves, bool zeros_align) {
  for (const std::uint16_t half : halves) {
    values.push_back(core::half_value(half));
    const int field = half >> 10 & 0x1f;
    const bool is_zero = (half & 0x7fffU) == 0;
    exponents.push_back(is_zero && !zeros_align ? kNone : std::max(field, 1) - 15);
  }
}

float multiply(const TensorCore& core, const Operand& query, const Operand& row) {
  const std::size_t columns = query.values.size();
  const auto width = static_cast<std::size_t>(core.sums.width);
  double sum = 0;
  for (std::size_t begin = 0; begin < columns; begin += width) {
    int largest = sum != 0 ? std::ilogb(sum) : Operand::kNone;
    for (std::size_t i = begin; i < begin + width; ++i) {
      largest = std::max(largest, query.exponents[i] + row.exponents[i]);
    }
    if (largest < -1000) continue;  // nothing but zeros
    const double units = std::ldexp(1.0, core.sums.alignment - largest);
    double total = std::trunc(sum * units);
    for (std::size_t i = begin; i < begin + width; ++i) total += std::trunc(query.values[i] * row.values[i] * units);
    if (!std::isfinite(total)) return static_cast<float>(total);
    sum = static_cast<double>(cut(static_cast<std::int64_t>(total))) / units;
  }
  return static_cast<float>(sum);
}

long double exact_product(const Operand& query, const Operand& row) {
  long double sum = 0;
  for (std::size_t i = 0; i < query.values.size(); ++i) {
    sum += static_cast<long double>(query.values[i] * row.values[i]);
  }
  return sum;
}

}  // namespace vicinal::contract
