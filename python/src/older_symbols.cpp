// Functions as the C library before 2.35 and the C++ library before GCC 12 have them. A wheel is linked with --wrap for
// each, so that it runs on systems of 2021 (manylinux_2_34), too. They do the same: the newer hypot sets errno in other
// cases, which core::Entry restores, and the newer wait lets pthread_cancel pass, which the library does not use.
#include <cmath>

#if defined(__GLIBC__) && defined(__x86_64__)

// NOLINTBEGIN(bugprone-reserved-identifier): the linker makes these names
extern "C" {
double older_hypot(double x, double y);
__asm__(".symver older_hypot, hypot@GLIBC_2.2.5");
__attribute__((visibility("hidden"))) double __wrap_hypot(double x, double y) {
  return older_hypot(x, y);
}

void older_wait(void* condition, void* lock);
__asm__(".symver older_wait, _ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE@GLIBCXX_3.4.11");
__attribute__((visibility("hidden"))) void __wrap__ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE(
    void* condition, void* lock) {
  older_wait(condition, lock);
}
}
// NOLINTEND(bugprone-reserved-identifier)

#endif
