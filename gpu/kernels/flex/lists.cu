/* Device entry points of the kernels that compute block lists: all, or the one in FA_ONLY. */
#include "gpu/kernels/flex/lists.cuh"

#define FA_ENTRY(name)                                                                                       \
  extern "C" __global__ void __launch_bounds__(FA_FLEX_LISTS_THREADS)                                        \
      name(const __grid_constant__ fa_flex_lists_params p) {                                                 \
    fa::name(p);                                                                                             \
  }
#ifdef FA_ONLY
FA_ONLY
#else
#include "gpu/kernels/flex/lists_list.h"
#endif
