// Hopper's own instructions, one function each: what barriers have besides (barrier.cuh), bulk copies that complete on
// them, and the warpgroup products m64n128k16 of fp16 into float32 and m64n128k32 of int8 into int32 (sm_90a).
#pragma once

#include <cstdint>

#include "cuda/base/barrier.cuh"

namespace vicinal::cuda::hopper {

/// Makes initialized barriers visible to the copy engine.
__device__ __forceinline__ void barrier_init_fence() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
/// Arrives, and the phase waits for so many bytes besides.
__device__ __forceinline__ void barrier_arrive_expect(Barrier* barrier, std::uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes)
               : "memory");
}

/// Contiguous bytes (a multiple of 16, aligned to 16) from device to shared memory; completes on the barrier.
__device__ __forceinline__ void bulk_copy(void* to, const void* from, std::uint32_t bytes, Barrier* barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                   shared_address(to)),
               "l"(from), "r"(bytes), "r"(shared_address(barrier))
               : "memory");
}

/// Names a matrix in shared memory that is made of core matrices (8 rows of 16 bytes, 128 bytes together, no swizzle):
/// `along_k`, `along_rows`: bytes from one core matrix to the next in either direction.
__device__ __forceinline__ std::uint64_t matrix(const void* start, std::uint32_t along_k, std::uint32_t along_rows) {
  return static_cast<std::uint64_t>((shared_address(start) & 0x3FFFF) >> 4) |
         static_cast<std::uint64_t>(along_k >> 4) << 16 | static_cast<std::uint64_t>(along_rows >> 4) << 32;
}

/// Registers a thread of the calling warpgroup has from now on: fewer, or more where others gave some.
template <int kRegisters>
__device__ __forceinline__ void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <int kRegisters>
__device__ __forceinline__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

__device__ __forceinline__ void products_begin() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ __forceinline__ void products_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
/// Waits until at most `kPending` committed groups are under way.
template <int kPending>
__device__ __forceinline__ void products_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}
/// Keeps the compiler from moving uses of the sums across what comes before.
__device__ __forceinline__ void products_fence(float (&sums)[64]) {
#pragma unroll
  for (float& sum : sums) asm volatile("" : "+f"(sum)::"memory");
}

__device__ __forceinline__ void products_fence(std::int32_t (&sums)[64]) {
#pragma unroll
  for (std::int32_t& sum : sums) asm volatile("" : "+r"(sum)::"memory");
}

/// sums (+)= a b^T for 64 rows of a, 128 rows of b and 16 columns. Lane l of warp w holds, for j in [0, 16), the rows
/// 16 w + l / 4 (sums[4 j], [4 j + 1]) and 8 more (sums[4 j + 2], [4 j + 3]) at columns 8 j + 2 (l % 4) and the next.
__device__ __forceinline__ void multiply_add(float (&s)[64], std::uint64_t a, std::uint64_t b, int accumulate) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %66, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
      "%64, %65, p, 1, 1, 0, 0;\n"
      "}\n"
      : "+f"(s[0]), "+f"(s[1]), "+f"(s[2]), "+f"(s[3]), "+f"(s[4]), "+f"(s[5]), "+f"(s[6]), "+f"(s[7]), "+f"(s[8]),
        "+f"(s[9]), "+f"(s[10]), "+f"(s[11]), "+f"(s[12]), "+f"(s[13]), "+f"(s[14]), "+f"(s[15]), "+f"(s[16]),
        "+f"(s[17]), "+f"(s[18]), "+f"(s[19]), "+f"(s[20]), "+f"(s[21]), "+f"(s[22]), "+f"(s[23]), "+f"(s[24]),
        "+f"(s[25]), "+f"(s[26]), "+f"(s[27]), "+f"(s[28]), "+f"(s[29]), "+f"(s[30]), "+f"(s[31]), "+f"(s[32]),
        "+f"(s[33]), "+f"(s[34]), "+f"(s[35]), "+f"(s[36]), "+f"(s[37]), "+f"(s[38]), "+f"(s[39]), "+f"(s[40]),
        "+f"(s[41]), "+f"(s[42]), "+f"(s[43]), "+f"(s[44]), "+f"(s[45]), "+f"(s[46]), "+f"(s[47]), "+f"(s[48]),
        "+f"(s[49]), "+f"(s[50]), "+f"(s[51]), "+f"(s[52]), "+f"(s[53]), "+f"(s[54]), "+f"(s[55]), "+f"(s[56]),
        "+f"(s[57]), "+f"(s[58]), "+f"(s[59]), "+f"(s[60]), "+f"(s[61]), "+f"(s[62]), "+f"(s[63])
      : "l"(a), "l"(b), "r"(accumulate));
}
/// The same for 32 columns of int8; what does not fit 32 bits wraps.
__device__ __forceinline__ void multiply_add(std::int32_t (&s)[64], std::uint64_t a, std::uint64_t b, int accumulate) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %66, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k32.s32.s8.s8 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
      "%64, %65, p;\n"
      "}\n"
      : "+r"(s[0]), "+r"(s[1]), "+r"(s[2]), "+r"(s[3]), "+r"(s[4]), "+r"(s[5]), "+r"(s[6]), "+r"(s[7]), "+r"(s[8]),
        "+r"(s[9]), "+r"(s[10]), "+r"(s[11]), "+r"(s[12]), "+r"(s[13]), "+r"(s[14]), "+r"(s[15]), "+r"(s[16]),
        "+r"(s[17]), "+r"(s[18]), "+r"(s[19]), "+r"(s[20]), "+r"(s[21]), "+r"(s[22]), "+r"(s[23]), "+r"(s[24]),
        "+r"(s[25]), "+r"(s[26]), "+r"(s[27]), "+r"(s[28]), "+r"(s[29]), "+r"(s[30]), "+r"(s[31]), "+r"(s[32]),
        "+r"(s[33]), "+r"(s[34]), "+r"(s[35]), "+r"(s[36]), "+r"(s[37]), "+r"(s[38]), "+r"(s[39]), "+r"(s[40]),
        "+r"(s[41]), "+r"(s[42]), "+r"(s[43]), "+r"(s[44]), "+r"(s[45]), "+r"(s[46]), "+r"(s[47]), "+r"(s[48]),
        "+r"(s[49]), "+r"(s[50]), "+r"(s[51]), "+r"(s[52]), "+r"(s[53]), "+r"(s[54]), "+r"(s[55]), "+r"(s[56]),
        "+r"(s[57]), "+r"(s[58]), "+r"(s[59]), "+r"(s[60]), "+r"(s[61]), "+r"(s[62]), "+r"(s[63])
      : "l"(a), "l"(b), "r"(accumulate));
}

/// Some products in a row, in groups of straight code: between two that a loop separates, the compiler has the matrix
/// unit wait. `first`: whether the sums begin with the first of them. The matrices move by so many units of 16 bytes a
/// product.
template <int kCount, class Sum>
__device__ __forceinline__ void multiply_group(Sum (&sums)[64], std::uint64_t& a, std::uint64_t& b, int a_step,
                                               int b_step, int accumulate) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    multiply_add(sums, a, b, i == 0 ? accumulate : 1);
    a += a_step;
    b += b_step;
  }
}
template <class Sum>
__device__ __forceinline__ void multiply_steps(Sum (&sums)[64], std::uint64_t a, std::uint64_t b, int a_step,
                                               int b_step, int steps, bool first) {
  int accumulate = first ? 0 : 1;
#pragma unroll 1
  for (; steps > 4; steps -= 4) {
    products_begin();
    multiply_group<4>(sums, a, b, a_step, b_step, accumulate);
    accumulate = 1;
  }
  products_begin();
  switch (steps) {
    case 4:
      multiply_group<4>(sums, a, b, a_step, b_step, accumulate);
      break;
    case 3:
      multiply_group<3>(sums, a, b, a_step, b_step, accumulate);
      break;
    case 2:
      multiply_group<2>(sums, a, b, a_step, b_step, accumulate);
      break;
    default:
      multiply_group<1>(sums, a, b, a_step, b_step, accumulate);
      break;
  }
}

}  // namespace vicinal::cuda::hopper
