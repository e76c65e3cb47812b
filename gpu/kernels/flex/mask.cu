/* Device entry point of the kernel that computes the map of blocks from mask_mod, which is defined before
 * this file (gpu/kernels/mods/call.cuh). */
#include "gpu/kernels/flex/lists.cuh"

#define FA_ENTRY(name)                                                                                       \
  extern "C" __global__ void __launch_bounds__(FA_FLEX_LISTS_THREADS)                                        \
      name(const __grid_constant__ fa_flex_lists_params p) {                                                 \
    fa::name<fa::flex_mods>(p);                                                                              \
  }
#ifdef FA_ONLY
FA_ONLY
#else
FA_ENTRY(flex_mask_map)
#endif
