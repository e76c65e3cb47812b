/* Device entry points of the flash forward kernel: all that are compiled ahead of time, or the one in
 * FA_ONLY. */
#include "gpu/kernels/flash/forward.cuh"

#define FA_ENTRY(name, T, D, kind)                                                                           \
  extern "C" __global__ void __launch_bounds__(fa::flash_forward_config<fa::T, D, fa::kind>::THREADS)        \
      name(const __grid_constant__ fa_attention_params p) {                                                      \
    fa::flash_forward<fa::flash_forward_config<fa::T, D, fa::kind>>(p);                                      \
  }
#ifdef FA_ONLY
FA_ONLY
#else
#include "gpu/kernels/flash/forward_list.h"
#endif
