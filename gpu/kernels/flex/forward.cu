/* Device entry points of the portable flex forward kernels, compiled for the expressions of a call, which are
 * defined before this file (gpu/kernels/mods/call.cuh): all, or the one in FA_ONLY. */
#include "gpu/kernels/flex/forward.cuh"

#define FA_ENTRY(name, T, VC)                                                                                \
  typedef fa::flex_forward_config_of<fa::T, VC>::type name##_config;                                         \
  extern "C" __global__ void __launch_bounds__(name##_config::THREADS, name##_config::BLOCKS)                \
      name(const __grid_constant__ fa_attention_params p) {                                                      \
    fa::flex_forward<name##_config>(p);                                                                      \
  }
#ifdef FA_ONLY
FA_ONLY
#else
#include "gpu/kernels/flex/forward_list.h"
#endif
