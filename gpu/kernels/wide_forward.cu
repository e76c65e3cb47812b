/* The device entry points of the wide forward kernel: all, or the one that FA_ONLY says. */
#include "gpu/kernels/wide_forward.cuh"

#define FA_ENTRY(name, T, VC)                                                                                \
  extern "C" __global__ void __launch_bounds__(fa::wide_forward_config<fa::T, VC>::THREADS, 1)               \
      name(const __grid_constant__ fa_flash_params p) {                                                      \
    fa::wide_forward<fa::wide_forward_config<fa::T, VC>>(p);                                                 \
  }
#ifdef FA_ONLY
FA_ONLY
#else
#define FA_ENTRY_BACKWARD(T)
#define FA_ENTRY_SINGLE(name, D)
#include "gpu/kernels/wide_list.h"
#endif
