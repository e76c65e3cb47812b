/* The judge's kernels: entries for a device, or a table of functions for the host (ref/cuda/machine.h). */
#include "ref/cuda/backward.cuh"
#include "ref/cuda/check.cuh"
#include "ref/cuda/dbias.cuh"
#include "ref/cuda/dbuffer.cuh"
#include "ref/cuda/debug.cuh"
#include "ref/cuda/fill.cuh"
#include "ref/cuda/forward.cuh"
#include "ref/cuda/load.cuh"
#include "ref/cuda/modify.cuh"
#include "ref/cuda/product.cuh"
#include "ref/cuda/settle.cuh"

#ifdef __CUDACC__
enum { THREADS = 256 };
#define ITEM_ROW ((int64_t)blockIdx.x * (THREADS / WARP) + threadIdx.x / WARP)
#define ITEM_ELEMENT ((int64_t)blockIdx.x * THREADS + threadIdx.x)
#define ITEM_TILE ((int64_t)blockIdx.x)
/* Blocks of threads on a processor at once, which registers have to leave room for: what waits in one is computed in another. */
enum { AT_ONCE_ROW = 2, AT_ONCE_ELEMENT = 1, AT_ONCE_TILE = 2 };
#define FA_JUDGE_KERNEL(name, kind)                                                                          \
  extern "C" __global__ void __launch_bounds__(THREADS, AT_ONCE_##kind)                                                    \
      fa_judge_entry_##name(const __grid_constant__ fa_judge_job x) {                                        \
    if (ITEM_##kind < x.n) fa_judge_##name(&x, ITEM_##kind);                                                 \
  }
#include "ref/cuda/kernels.def"
#else
#include "ref/cuda/host.h"
const fa_judge_function fa_judge_functions[] = {
#define FA_JUDGE_KERNEL(name, kind) fa_judge_##name,
#include "ref/cuda/kernels.def"
};
#endif
