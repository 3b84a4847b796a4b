// Numbers of locally linear embedding (contract clause 17), the same on host and device.
#pragma once

#include <cstdint>

namespace vicinal::solver {

inline constexpr double kModifiedReg = 1e-3;    ///< of `modified`: what regularizes a Gram matrix, of its trace
inline constexpr double kNoReflection = 1e-12;  ///< length of a mirror below which there is nothing to reflect
inline constexpr double kOrthogonal = 1e-15;    ///< cosine at which two columns need no rotation
inline constexpr int kMaxJacobiSweeps = 60;     ///< Jacobi's converge within ten
inline constexpr std::int64_t kGuards = 4;      ///< vectors that iterate beside those that are wanted

}  // namespace vicinal::solver
