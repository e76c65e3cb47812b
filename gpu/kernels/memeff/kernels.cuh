/* The wide backward kernels of one element type, for whoever gives them entry points. */
#ifndef FA_GPU_KERNELS_MEMEFF_KERNELS_CUH
#define FA_GPU_KERNELS_MEMEFF_KERNELS_CUH

#include "gpu/kernels/memeff/backward_keys.cuh"
#include "gpu/kernels/memeff/backward_queries.cuh"
#include "gpu/kernels/memeff/backward_single.cuh"
#include "gpu/kernels/memeff/dbias.cuh"

/* X(name, function) of each. */
#define FA_WIDE_BACKWARD_KERNELS(X, T)                                                                       \
  X(wide_backward_##T##_prepare, fa::wide_backward_prepare<fa::T>)                                           \
  X(wide_backward_##T##_keys, fa::wide_backward_keys<fa::wide_backward_config<fa::T>>)                       \
  X(wide_backward_##T##_queries, fa::wide_backward_queries<fa::wide_backward_config<fa::T>>)                 \
  X(wide_backward_##T##_dbias, fa::wide_backward_dbias<fa::wide_backward_config<fa::T>>)

#endif
