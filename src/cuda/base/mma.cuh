// The instructions of the portable screen, one function each: copies from device to shared memory that others go on
// beside (sm_80; before, they are waited for), matrices from shared memory into registers, and the warp's products
// m16n8k16 of fp16 and m16n8k32 of int8.
#pragma once

#include <cstdint>

#include "cuda/base/barrier.cuh"

namespace vicinal::cuda::mma {

/// 16 bytes, both sides aligned to that.
__device__ __forceinline__ void copy(void* to, const void* from) {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to)), "l"(from) : "memory");
#else
  *static_cast<uint4*>(to) = *static_cast<const uint4*>(from);
#endif
}
/// kBytes, 4, 8 or 16, both sides aligned to that; zeros instead where they are not there. Not before sm_80.
template <int kBytes>
__device__ __forceinline__ void copy_or_clear(void* to, const void* from, bool is_there) {
#if __CUDA_ARCH__ >= 800
  const int bytes = is_there ? kBytes : 0;
  if constexpr (kBytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from), "r"(bytes)
                 : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(shared_address(to)), "l"(from), "n"(kBytes),
                 "r"(bytes)
                 : "memory");
  }
#else
  __trap();
#endif
}
/// The thread's copies since the last call are a group, be they none.
__device__ __forceinline__ void copies_commit() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
/// Waits until at most the last `kPending` groups of the thread are under way. Others see its copies after a barrier.
template <int kPending>
__device__ __forceinline__ void copies_wait() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
#endif
}

/// Arrives when the copies are done that the thread has set going.
__device__ __forceinline__ void copies_arrive(Barrier* barrier) {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(shared_address(barrier)) : "memory");
#else
  barrier_arrive(barrier);
#endif
}
/// Four matrices of 8 rows of 16 bytes: lane 8 i + r names row r of matrix i, and has of each four bytes of row
/// lane / 4, from byte 4 (lane % 4).
__device__ __forceinline__ void load_four(std::uint32_t (&to)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(shared_address(row))
               : "memory");
}

/// sums += a b^T for 16 rows of a, 8 rows of b and 32 bytes of each. a: rows 0 to 7 and 8 to 15 of the first 16 bytes,
/// then of the others; b0, b1: its first and last 16 bytes. Lane l has the sums of rows l / 4 (s[0], s[1]) and 8 more
/// (s[2], s[3]) with rows 2 (l % 4) and the next of b.
__device__ __forceinline__ void multiply_add(float* s, const std::uint32_t (&a)[4], std::uint32_t b0,
                                             std::uint32_t b1) {
#if __CUDA_ARCH__ >= 800
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(s[0]), "+f"(s[1]), "+f"(s[2]), "+f"(s[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#else
  // Half the columns, then the other half.
  asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
      : "+f"(s[0]), "+f"(s[1]), "+f"(s[2]), "+f"(s[3])
      : "r"(a[0]), "r"(a[1]), "r"(b0));
  asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
      : "+f"(s[0]), "+f"(s[1]), "+f"(s[2]), "+f"(s[3])
      : "r"(a[2]), "r"(a[3]), "r"(b1));
#endif
}
/// sums = a b^T.
__device__ __forceinline__ void multiply(float* s, const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1) {
#if __CUDA_ARCH__ >= 800
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%10, %10, %10, %10};"
      : "=f"(s[0]), "=f"(s[1]), "=f"(s[2]), "=f"(s[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "f"(0.0F));
#else
  s[0] = s[1] = s[2] = s[3] = 0;
  multiply_add(s, a, b0, b1);
#endif
}
/// What tf32 has of it: the rest, less than 2^-10 of it, is cut off.
__device__ __forceinline__ std::uint32_t tf32(float x) {
  return __float_as_uint(x) & 0xffffe000U;
}
/// sums += a b^T of tf32, for 8 columns: a: rows 0 to 7 and 8 to 15 of column lane % 4, then of the one 4 further; b0,
/// b1: those columns of row lane / 4. Not before sm_80.
__device__ __forceinline__ void multiply_add_tf32(float* s, const std::uint32_t (&a)[4], std::uint32_t b0,
                                                  std::uint32_t b1) {
#if __CUDA_ARCH__ >= 800
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(s[0]), "+f"(s[1]), "+f"(s[2]), "+f"(s[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#else
  __trap();
#endif
}
/// sums += a b^T of int8; not before sm_80.
__device__ __forceinline__ void multiply_add(std::int32_t* s, const std::uint32_t (&a)[4], std::uint32_t b0,
                                             std::uint32_t b1) {
#if __CUDA_ARCH__ >= 800
  asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+r"(s[0]), "+r"(s[1]), "+r"(s[2]), "+r"(s[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#else
  __trap();
#endif
}

}  // namespace vicinal::cuda::mma
