/* The device entry points of the backward kernels: all that are compiled ahead of time, or those that FA_ONLY
 * says. */
#include "gpu/kernels/flash_backward.cuh"
#include "gpu/kernels/flash_backward_convert.cuh"
#include "gpu/kernels/flash_backward_prepare.cuh"

#define FA_KERNEL(name, ...)                                                                                 \
  extern "C" __global__ void __launch_bounds__(FA_FLASH_BACKWARD_THREADS)                                    \
      name(const __grid_constant__ fa_flash_backward_params p) {                                             \
    __VA_ARGS__(p);                                                                                          \
  }
#define FA_ENTRY(name, T, D, kind)                                                                           \
  FA_KERNEL(name, fa::flash_backward<fa::flash_backward_config<fa::T, D, fa::kind>>)
#define FA_ENTRY_ROWS(name, T, D)                                                                            \
  FA_KERNEL(name##_prepare, fa::flash_backward_prepare<fa::flash_backward_prepare_config<fa::T, D, true>>)   \
  FA_KERNEL(name##_prepare_only,                                                                             \
            fa::flash_backward_prepare<fa::flash_backward_prepare_config<fa::T, D, false>>)                  \
  FA_KERNEL(name##_convert, fa::flash_backward_convert<fa::flash_backward_convert_config<fa::T, D>>)
#ifdef FA_ONLY
FA_ONLY
#else
#include "gpu/kernels/flash_backward_list.h"
#endif
