/* Device entry points of the portable flex backward kernels, compiled for the expressions of a call, which
 * are defined before this file (gpu/kernels/mods/call.cuh): all, or the one in FA_ONLY. */
#include "gpu/kernels/memeff/dbias.cuh"

#include "gpu/kernels/memeff/backward_keys.cuh"

#define FA_ENTRY(name, T, kernel, BN, VC)                                                                    \
  extern "C" __global__ void __launch_bounds__(FA_MEMEFF_BACKWARD_THREADS, 1)                                  \
      name(const __grid_constant__ fa_memeff_backward_params p) {                                              \
    fa::kernel<fa::memeff_backward_config<fa::T, fa::flex_mods, BN, VC>>(p);                                   \
  }
#ifdef FA_ONLY
FA_ONLY
#else
#include "gpu/kernels/flex/backward_list.h"
#endif
