// The floating-point environment that keys are defined in (contract clause 1): round to nearest, nothing flushed to
// zero. A caller's thread may have another one: any shared object built with -ffast-math switches flushing on.
#pragma once

#if defined(__x86_64__)
#include <xmmintrin.h>
#else
#include <cfenv>
#endif

namespace vicinal::core {

/// Compilers take no notice of what arithmetic owes to the floating-point environment: they may move it over the lines
/// that change that. A value that passes here is computed before whatever follows. Results that are returned in
/// registers need it; what is in memory, `DefaultFloats` sees to.
inline double computed(double value) noexcept {
  __asm__ volatile("" : "+m"(value));
  return value;
}
/// Every value in memory is computed before whatever follows.
inline void compute_memory() noexcept {
  __asm__ volatile("" : : : "memory");
}

/// The default floating-point environment for a scope. On x86-64 that is one register; fesetenv costs ten times more.
class DefaultFloats {
 public:
#if defined(__x86_64__)
  DefaultFloats() noexcept : before_(_mm_getcsr()) {
    compute_memory();
    _mm_setcsr(0x1f80);
  }
  ~DefaultFloats() {
    compute_memory();
    _mm_setcsr(before_);
  }
#else
  DefaultFloats() noexcept {
    std::fegetenv(&before_);
    compute_memory();
    std::fesetenv(FE_DFL_ENV);
  }
  ~DefaultFloats() {
    compute_memory();
    std::fesetenv(&before_);
  }
#endif
  DefaultFloats(const DefaultFloats&) = delete;
  DefaultFloats& operator=(const DefaultFloats&) = delete;

 private:
#if defined(__x86_64__)
  unsigned before_;
#else
  std::fenv_t before_{};
#endif
};

}  // namespace vicinal::core
