/* What the judge's kernels need of the machine: a device's threads, or none. On the host a warp has one lane, and a block of
 * a product is three loops, so that the whole judge of a device also compiles as plain C++ and is tried without one. */
#ifndef FA_REF_CUDA_MACHINE_CUH
#define FA_REF_CUDA_MACHINE_CUH

#include "ref/cuda/host.h"

#include <math.h>
#include <stdint.h>

#ifdef __CUDACC__
#define FA_DEVICE static __device__ __forceinline__
#define FA_UNROLL _Pragma("unroll") /* before a loop over an array that is to be in registers */
/* Before a loop with so much in it that copies of it would not fit where instructions are kept. */
#define FA_ROLLED _Pragma("unroll 1")
/* Before one that waits for memory: so many loads are under way. */
#define FA_DEEP _Pragma("unroll 16")
#define FA_FEW _Pragma("unroll 8")
enum { WARP = 32, WARPS = FA_JUDGE_THREADS / WARP };

/* name: n elements of the warp's own, for as long as its item is computed. */
#define FA_WARP_ARRAY(type, name, n)                                                                         \
  __shared__ type name##_of_warps[WARPS][n];                                                                 \
  type *name = name##_of_warps[threadIdx.x / WARP]

/* Every lane gets the same bits: both partners of a step add the same two numbers. */
FA_DEVICE double warp_sum(double x) {
  for (int by = WARP / 2; by > 0; by /= 2) x += __shfl_xor_sync(~0u, x, by);
  return x;
}
template <typename T> FA_DEVICE T warp_max(T x) {
  for (int by = WARP / 2; by > 0; by /= 2) {
    const T y = __shfl_xor_sync(~0u, x, by);
    x = y > x ? y : x;
  }
  return x;
}
/* The sum of counts, which an int holds. */
FA_DEVICE int warp_count(int x) {
  return __reduce_add_sync(~0u, x);
}
/* Those bits that all lanes have. */
FA_DEVICE uint32_t warp_all(uint32_t bits) {
  return __reduce_and_sync(~0u, bits);
}
FA_DEVICE uint64_t warp_xor(uint64_t bits) {
  const uint32_t high = __reduce_xor_sync(~0u, (uint32_t)(bits >> 32));
  return (uint64_t)high << 32 | __reduce_xor_sync(~0u, (uint32_t)bits);
}
FA_DEVICE bool warp_any(bool x) {
  return __any_sync(~0u, x);
}
/* What the lane before this one has; for the first, `first`. */
FA_DEVICE double warp_before(double x, double first) {
  const double before = __shfl_up_sync(~0u, x, 1);
  return threadIdx.x % WARP == 0 ? first : before;
}
/* What the last lane has. */
FA_DEVICE double warp_last(double x) {
  return __shfl_sync(~0u, x, WARP - 1);
}
/* What lanes wrote before it is there for all of them after it. */
FA_DEVICE void warp_sync() {
  __syncwarp();
}
FA_DEVICE int lane() {
  return (int)(threadIdx.x % WARP);
}
/* *at = the larger, of numbers that are not negative: their bits have their order. */
FA_DEVICE void raise_to(double *at, double x) {
  atomicMax((unsigned long long *)at, (unsigned long long)__double_as_longlong(x));
}
FA_DEVICE void raise_flag(int *at, int bits) {
  atomicOr(at, bits);
}
/* Whole numbers: their order makes no difference. */
FA_DEVICE void add_to(int64_t *at, int64_t n) {
  atomicAdd((unsigned long long *)at, (unsigned long long)n);
}
#else
#define FA_DEVICE static inline
#define FA_UNROLL
#define FA_ROLLED
#define FA_DEEP
#define FA_FEW
enum { WARP = 1 };
#define FA_WARP_ARRAY(type, name, n) type name[n]

FA_DEVICE double warp_sum(double x) {
  return x;
}
template <typename T> FA_DEVICE T warp_max(T x) {
  return x;
}
FA_DEVICE int warp_count(int x) {
  return x;
}
FA_DEVICE uint32_t warp_all(uint32_t bits) {
  return bits;
}
FA_DEVICE uint64_t warp_xor(uint64_t bits) {
  return bits;
}
FA_DEVICE bool warp_any(bool x) {
  return x;
}
FA_DEVICE double warp_before(double, double first) {
  return first;
}
FA_DEVICE double warp_last(double x) {
  return x;
}
FA_DEVICE void warp_sync() {}
FA_DEVICE int lane() {
  return 0;
}
FA_DEVICE void raise_to(double *at, double x) {
  if (x > *at) *at = x;
}
FA_DEVICE void raise_flag(int *at, int bits) {
  *at |= bits;
}
FA_DEVICE void add_to(int64_t *at, int64_t n) {
  *at += n;
}
#endif

#endif
