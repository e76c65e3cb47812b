/* Device entry points of the kernels that clear and round the gradients of captured buffers, before and after
 * the backward kernels. */
#include "gpu/kernels/mods/exact.cuh"

#define FA_KERNEL(name)                                                                                      \
  extern "C" __global__ void __launch_bounds__(FA_FLEX_EXACT_THREADS)                                        \
      name(const __grid_constant__ fa_flex_exact_params p) {                                                 \
    fa::name(p);                                                                                             \
  }
FA_KERNEL(flex_exact_clear)
FA_KERNEL(flex_exact_round)
