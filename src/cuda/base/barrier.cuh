// Barriers in shared memory that count threads, copies and bytes: mbarrier since sm_80, by hand before.
#pragma once

#include <cstdint>

namespace vicinal::cuda {

__device__ __forceinline__ std::uint32_t shared_address(const void* pointer) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}

/// In shared memory. A phase ends when as many have arrived as the barrier was made for. Before sm_80 the lower half
/// counts arrivals, and the upper half has how many end a phase: a power of two, so that the count may overflow.
using Barrier = std::uint64_t;

__device__ __forceinline__ void barrier_init(Barrier* barrier, std::uint32_t arrivals) {
#if __CUDA_ARCH__ >= 800
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals) : "memory");
#else
  *barrier = static_cast<std::uint64_t>(arrivals) << 32;
#endif
}
/// What the thread has read and written so far comes before what those do who wait for the phase.
__device__ __forceinline__ void barrier_arrive(Barrier* barrier) {
#if __CUDA_ARCH__ >= 800
  asm volatile(
      "{\n"
      ".reg .b64 state;\n"
      "mbarrier.arrive.shared.b64 state, [%0];\n"
      "}\n" ::"r"(shared_address(barrier))
      : "memory");
#else
  asm volatile("red.release.cta.shared.add.u32 [%0], 1;" ::"r"(shared_address(barrier)) : "memory");
#endif
}
/// Waits for the end of the phases 0, 2, 4, ... (parity 0) or 1, 3, 5, ..., whichever is the current or the last one.
__device__ __forceinline__ void barrier_wait(Barrier* barrier, std::uint32_t parity) {
#if __CUDA_ARCH__ >= 800
  asm volatile(
      "{\n"
      ".reg .pred done;\n"
      "again:\n"
#if __CUDA_ARCH__ >= 900
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
#else
      "mbarrier.test_wait.parity.shared.b64 done, [%0], %1;\n"
#endif
      "@done bra over;\n"
      "bra again;\n"
      "over:\n"
      "}\n" ::"r"(shared_address(barrier)),
      "r"(parity)
      : "memory");
#else
  std::uint32_t arrived = 0;
  std::uint32_t of = 0;
  do {
    asm volatile("ld.acquire.cta.shared.v2.u32 {%0, %1}, [%2];"
                 : "=r"(arrived), "=r"(of)
                 : "r"(shared_address(barrier))
                 : "memory");
  } while ((arrived / of & 1) == parity);
#endif
}

}  // namespace vicinal::cuda
