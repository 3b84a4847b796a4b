// DefaultFloats: arithmetic within a scope is done in the default mode, also the last operation before its end, which a
// compiler may move behind it (contract clause 10).
#include "core/floats.hpp"

#include <gtest/gtest.h>

#if defined(__x86_64__)

namespace vicinal::core {
namespace {

constexpr unsigned kNearest = 0x1f80;
constexpr unsigned kUpward = 0x5f80;

struct Quotient {
  double value = 0;
  double twice = 0;
  double padding = 0;  // so that it is returned in memory
};

__attribute__((noinline)) double returned(double x, double y) {
  const DefaultFloats floats;
  return computed(x / y);
}
__attribute__((noinline)) Quotient returned_in_memory(double x, double y) {
  const DefaultFloats floats;
  return {x / y, 2 * x / y, 0};
}
__attribute__((noinline)) void stored(double x, double y, double* to) {
  const DefaultFloats floats;
  *to = x / y;
}

TEST(DefaultFloats, RoundTheLastOperationOfTheirScopeToNearest) {
  _mm_setcsr(kUpward);
  const double at_once = returned(1, 3);  // upward it is the next float64
  const Quotient in_memory = returned_in_memory(1, 3);
  double to = 0;
  stored(1, 3, &to);
  const unsigned after = _mm_getcsr() & 0xffc0U;
  _mm_setcsr(kNearest);
  EXPECT_EQ(at_once, 1.0 / 3);
  EXPECT_EQ(in_memory.value, 1.0 / 3);
  EXPECT_EQ(in_memory.twice, 2.0 / 3);
  EXPECT_EQ(to, 1.0 / 3);
  EXPECT_EQ(after, kUpward & 0xffc0U);
}

}  // namespace
}  // namespace vicinal::core

#endif
