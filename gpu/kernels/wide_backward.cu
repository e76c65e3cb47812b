/* The device entry points of the wide backward kernels. */
#include "gpu/kernels/wide_backward_keys.cuh"
#include "gpu/kernels/wide_backward_queries.cuh"

#define FA_KERNEL(name)                                                                                      \
  extern "C" __global__ void __launch_bounds__(FA_WIDE_BACKWARD_THREADS)                                     \
      name(const __grid_constant__ fa_wide_backward_params p)
#define FA_ENTRY_BACKWARD(T)                                                                                 \
  FA_KERNEL(wide_backward_##T##_prepare) {                                                                   \
    fa::wide_backward_prepare<fa::T>(p);                                                                     \
  }                                                                                                          \
  FA_KERNEL(wide_backward_##T##_keys) {                                                                      \
    fa::wide_backward_keys<fa::wide_backward_config<fa::T>>(p);                                              \
  }                                                                                                          \
  FA_KERNEL(wide_backward_##T##_queries) {                                                                   \
    fa::wide_backward_queries<fa::wide_backward_config<fa::T>>(p);                                           \
  }
FA_ENTRY_BACKWARD(f32)
FA_ENTRY_BACKWARD(f16)
FA_ENTRY_BACKWARD(bf16)
