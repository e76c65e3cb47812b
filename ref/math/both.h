/* Marks functions that the judge on the CPU and the judge on a device share. Neither may contract a product and a sum
 * into an fma (-ffp-contract=off, -fmad=false), so that with equal arguments both have equal bits, libm apart. */
#ifndef FA_REF_MATH_BOTH_H
#define FA_REF_MATH_BOTH_H

#if defined(__CUDACC__)
#define FA_BOTH static __forceinline__ __host__ __device__
#else
#define FA_BOTH static inline __attribute__((always_inline, unused))
#endif

#endif
