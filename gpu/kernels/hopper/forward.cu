/* Device entry points of the forward kernels for sm_90a. */
#include "gpu/kernels/hopper/forward.cuh"

#define FA_ENTRY(name, ...)                                                                                  \
  extern "C" __global__ void __launch_bounds__(fa::hopper_forward_config<__VA_ARGS__>::THREADS, 1)           \
      name(const __grid_constant__ fa_hopper_params p) {                                                     \
    fa::hopper_forward<fa::hopper_forward_config<__VA_ARGS__>>(p);                                           \
  }
#ifdef FA_ONLY
FA_ONLY
#else
#include "gpu/kernels/hopper/forward_list.h"
#endif
