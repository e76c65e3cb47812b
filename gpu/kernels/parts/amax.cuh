/* The largest P and the largest |O| of a call (docs/reference/semantics.md, "Eight bits"): each warp raises both numbers to those
 * of its rows, in any order, which changes nothing. They are compared as bits: a NaN is more than any number. */
#ifndef FA_GPU_KERNELS_PARTS_AMAX_CUH
#define FA_GPU_KERNELS_PARTS_AMAX_CUH

#include "gpu/kernels/machine/prim.cuh"
#include "gpu/kernels/params/attention.h"

namespace fa {

FA_DEVICE uint32_t larger_bits(uint32_t a, uint32_t b) {
  return a > b ? a : b;
}

/* The largest that a lane has seen. */
struct amax_of_lane {
  uint32_t p = 0, o = 0;
  FA_DEVICE void take_p(float x) { p = larger_bits(p, float_bits(x) & 0x7fffffffu); }
  FA_DEVICE void take_o(float x) { o = larger_bits(o, float_bits(x) & 0x7fffffffu); }
};

FA_DEVICE float largest_of_warp(uint32_t bits) {
  FA_UNROLL
  for (int i = 16; i > 0; i /= 2) bits = larger_bits(bits, float_bits(shfl_xor(as_float(bits), i)));
  return as_float(bits);
}

/* By all lanes of a warp. */
FA_DEVICE void raise_amax(const fa_kernel_amax &to, const amax_of_lane &most, int lane) {
  const float p = largest_of_warp(most.p), o = largest_of_warp(most.o);
  if (lane > 0) return;
  atomic_max(to.p, p);
  atomic_max(to.o, o);
}

/* Grid: one block. */
FA_DEVICE void clear_amax(const fa_kernel_amax &to) {
  if (threadIdx.x > 0) return;
  store_global(to.p, 0.0f);
  store_global(to.o, 0.0f);
}

} // namespace fa

#endif
