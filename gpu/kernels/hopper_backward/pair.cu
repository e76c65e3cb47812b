/* Device entry points of the main backward kernel for sm_90a for head dims above 128. */
#include "gpu/kernels/hopper_backward/pair.cuh"

#define FA_ENTRY(name, ...)                                                                                  \
  extern "C" __global__ void __cluster_dims__(fa::hopper_backward_pair_config<__VA_ARGS__>::RANKS, 1, 1)      \
      __launch_bounds__(fa::hopper_backward_pair_config<__VA_ARGS__>::THREADS, 1)                            \
      name(const __grid_constant__ fa_hopper_backward_params p) {                                            \
    fa::hopper_backward_pair<fa::hopper_backward_pair_config<__VA_ARGS__>>(p);                               \
  }
#ifdef FA_ONLY
FA_ONLY
#else
#include "gpu/kernels/hopper_backward/pair_list.h"
#endif
