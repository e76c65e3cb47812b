/* Device entry points of the main backward kernel for sm_90a. */
#include "gpu/kernels/hopper_backward/main.cuh"

#define FA_ENTRY(name, ...)                                                                                  \
  extern "C" __global__ void __launch_bounds__(fa::hopper_backward_config<__VA_ARGS__>::THREADS, 1)          \
      name(const __grid_constant__ fa_hopper_backward_params p) {                                            \
    fa::hopper_backward<fa::hopper_backward_config<__VA_ARGS__>>(p);                                         \
  }
#ifdef FA_ONLY
FA_ONLY
#else
#include "gpu/kernels/hopper_backward/main_list.h"
#endif
