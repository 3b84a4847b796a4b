// Arithmetic in which the bounds of screens are looked at from outside.
#pragma once

#include <quadmath.h>

namespace vicinal {

using Quad = __float128;

inline Quad power2(int exponent) {
  return ldexpq(1, exponent);
}

}  // namespace vicinal
