/* Marks functions that are compiled for the CPU and for a device. Neither may contract a product and a sum into an fma
 * (-ffp-contract=off, -fmad=false), so that with equal arguments both have equal bits, libm apart. */
#ifndef FA_CASES_BASE_BOTH_H
#define FA_CASES_BASE_BOTH_H

#if defined(__CUDACC__)
#define FA_BOTH static __forceinline__ __host__ __device__
#define FA_SHARED static __attribute__((unused)) __host__ __device__ /* too long to be inlined everywhere */
#else
#define FA_BOTH static inline __attribute__((always_inline, unused))
#define FA_SHARED static __attribute__((unused))
#endif

#endif
