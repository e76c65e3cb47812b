/* Device entry points of the memeff forward kernels: all, or the one in FA_ONLY. */
#include "gpu/kernels/memeff/forward_whole.cuh"

#define FA_KERNEL(name, config, function)                                                                    \
  extern "C" __global__ void __launch_bounds__(config::THREADS, 1)                                           \
      name(const __grid_constant__ fa_attention_params p) {                                                      \
    function<config>(p);                                                                                     \
  }
#define FA_ENTRY(name, T, VC)                                                                                \
  typedef fa::memeff_forward_config<fa::T, VC> name##_config;                                                  \
  FA_KERNEL(name, name##_config, fa::memeff_forward)
#define FA_ENTRY_WHOLE(name, T, D) FA_KERNEL(name, fa::memeff_whole_config<D>, fa::memeff_forward_whole)
#ifdef FA_ONLY
FA_ONLY
#else
#define FA_ENTRY_BACKWARD(T)
#define FA_ENTRY_SINGLE(name, T, D)
#include "gpu/kernels/memeff/kernel_list.h"
#endif
