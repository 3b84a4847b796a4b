// What the cores can compute at most: multiply-adds that stay in registers, on every thread at once. A figure to hold
// measured rates against.
#pragma once

#include "base/output.hpp"
#include "vicinal/context.hpp"

namespace vicinal::cli {

/// 10^9 operations a second, two a multiply-add, of all threads together; 0 where the processor lacks the instruction.
struct Peak {
  double float32 = 0;   ///< FMA, the widest there is
  double bfloat16 = 0;  ///< AVX512-BF16 dot product into float32
  double int8 = 0;      ///< AVX512-VNNI dot product into int32
};

/// The best of three tries of 50 ms each.
Peak measure_peak(const Context& ctx);
/// An instruction that is not there is null.
Json to_json(const Peak& peak);
std::string format_peak(const Peak& peak);

}  // namespace vicinal::cli
