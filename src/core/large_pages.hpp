// Large pages for large arrays: fewer faults when they are first written, and smaller page tables when places are
// looked at all over them.
#pragma once

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include <cstddef>
#include <memory>

namespace vicinal::core {

inline constexpr std::size_t kLargePage = std::size_t{1} << 21;

/// Asks for large pages where the system has them. What it answers does not matter.
inline void prefer_large_pages(void* data, std::size_t bytes) {
#if defined(__linux__)
  if (std::align(kLargePage, kLargePage, data, bytes) != nullptr)
    static_cast<void>(madvise(data, bytes / kLargePage * kLargePage, MADV_HUGEPAGE));
#else
  static_cast<void>(data);
  static_cast<void>(bytes);
#endif
}

}  // namespace vicinal::core
