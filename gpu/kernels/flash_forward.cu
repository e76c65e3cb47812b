/* The device entry points of the forward kernel, compiled ahead of time. */
#include "gpu/kernels/flash_forward.cuh"

#define FA_ENTRY(name, T, D, ALIGNED, SCORE_MOD)                                                             \
  extern "C" __global__ void __launch_bounds__(128) name(const __grid_constant__ fa_flash_params p) {        \
    fa::flash_forward<fa::flash_forward_config<fa::T, D, ALIGNED, SCORE_MOD>>(p);                            \
  }
#include "gpu/kernels/flash_forward_list.h"
