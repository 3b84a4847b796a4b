// A tensor core in software, to the bit: how float16 products are aligned, cut and summed
// (src/formulas/nearest/half_screen.hpp has the model, which agrees with the published bit-accurate ones and with what
// an H200 was seen to do).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "formulas/nearest/half_screen.hpp"

namespace vicinal::contract {

struct TensorCore {
  core::Accumulation sums;
  bool zeros_align = false;  ///< a factor of zero takes part in the alignment as 2^-14 does; no maker says
};

/// A packed row with what the hardware reads from it.
struct Operand {
  std::vector<double> values;
  std::vector<int> exponents;  ///< of a subnormal -14, of zero kNone or -14

  static constexpr int kNone = -10000;
  Operand(std::span<const std::uint16_t> halves, bool zeros_align);
};

/// The product of a query and a row, in steps of the core's width from the first column to the last.
float multiply(const TensorCore& core, const Operand& query, const Operand& row);

/// The same sum, in arithmetic that rounds 40 bits below float32.
long double exact_product(const Operand& query, const Operand& row);

}  // namespace vicinal::contract
