/* Device entry points of the memeff backward kernels: all, or those in FA_ONLY. */
#include "gpu/kernels/memeff/kernels.cuh"

#define FA_KERNEL(name, ...)                                                                                 \
  extern "C" __global__ void __launch_bounds__(FA_MEMEFF_BACKWARD_THREADS)                                     \
      name(const __grid_constant__ fa_memeff_backward_params p) {                                              \
    __VA_ARGS__(p);                                                                                          \
  }
#define FA_ENTRY_BACKWARD(T) FA_MEMEFF_BACKWARD_KERNELS(FA_KERNEL, T)
#define FA_ENTRY_SINGLE(name, T, D) FA_KERNEL(name, fa::memeff_backward_single<fa::memeff_single_config<D>>)
#ifdef FA_ONLY
FA_ONLY
#else
#define FA_ENTRY(name, T, VC)
#define FA_ENTRY_WHOLE(name, T, D)
#include "gpu/kernels/memeff/kernel_list.h"
#endif
