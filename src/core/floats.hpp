// The floating-point environment that keys are defined in (contract clause 1): round to nearest, nothing flushed to
// zero. A caller's thread may have another one: any shared object built with -ffast-math switches flushing on.
#pragma once

#if defined(__x86_64__)
#include <xmmintrin.h>
#else
#include <cfenv>
#endif

namespace vicinal::core {

/// The default floating-point environment for a scope. On x86-64 that is one register; fesetenv costs ten times more.
class DefaultFloats {
 public:
#if defined(__x86_64__)
  DefaultFloats() noexcept : before_(_mm_getcsr()) {
    _mm_setcsr(0x1f80);
  }
  ~DefaultFloats() {
    _mm_setcsr(before_);
  }
#else
  DefaultFloats() noexcept {
    std::fegetenv(&before_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~DefaultFloats() {
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
