// hypot as C libraries before 2.35 have it. A wheel is linked with --wrap=hypot, so that it runs on them, too; the
// values are the same, only errno is set in other cases, which core::Entry restores.
#include <cmath>

#if defined(__GLIBC__) && defined(__x86_64__)

extern "C" {
double older_hypot(double x, double y);
__asm__(".symver older_hypot, hypot@GLIBC_2.2.5");

__attribute__((visibility("hidden"))) double __wrap_hypot(double x, double y) {  // NOLINT(bugprone-reserved-identifier)
  return older_hypot(x, y);
}
}

#endif
