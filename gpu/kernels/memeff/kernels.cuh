/* The list of memeff backward kernels of one element type, for the files that define entry points. */
#ifndef FA_GPU_KERNELS_MEMEFF_KERNELS_CUH
#define FA_GPU_KERNELS_MEMEFF_KERNELS_CUH

#include "gpu/kernels/memeff/backward_keys.cuh"
#include "gpu/kernels/memeff/backward_queries.cuh"
#include "gpu/kernels/memeff/backward_single.cuh"
#include "gpu/kernels/memeff/dbias.cuh"

/* X(name, function) for each kernel. */
#define FA_MEMEFF_BACKWARD_KERNELS(X, T)                                                                       \
  X(memeff_backward_##T##_prepare, fa::memeff_backward_prepare<fa::T>)                                           \
  X(memeff_backward_##T##_keys, fa::memeff_backward_keys<fa::memeff_backward_config<fa::T>>)                       \
  X(memeff_backward_##T##_queries, fa::memeff_backward_queries<fa::memeff_backward_config<fa::T>>)                 \
  X(memeff_backward_##T##_dbias, fa::memeff_backward_dbias<fa::memeff_backward_config<fa::T>>)

#endif
