/* The judge's kernels: entries for a device, or a table of functions for the host (ref/cuda/machine.h). */
#include "ref/cuda/backward.cuh"
#include "ref/cuda/by_key.cuh"
#include "ref/cuda/check.cuh"
#include "ref/cuda/dbias.cuh"
#include "ref/cuda/dbuffer.cuh"
#include "ref/cuda/debug.cuh"
#include "ref/cuda/fill.cuh"
#include "ref/cuda/forward.cuh"
#include "ref/cuda/host.h"
#include "ref/cuda/load.cuh"
#include "ref/cuda/modify.cuh"
#include "ref/cuda/product.cuh"
#include "ref/cuda/settle.cuh"

/* The job of a block of threads; *block becomes which one of the job's it is. */
FA_DEVICE const fa_judge_job *job_of_block(const fa_judge_batch *batch, const char *jobs, int64_t *block) {
  int low = 0, high = batch->n;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    if (batch->first[middle] <= *block)
      low = middle;
    else
      high = middle;
  }
  *block -= batch->first[low];
  return (const fa_judge_job *)(jobs + batch->at[low]);
}

#ifdef __CUDACC__
/* Blocks of threads on a processor at once, which registers have to leave room for: what waits in one is computed in another. */
enum { AT_ONCE_ROW = 2, AT_ONCE_ELEMENT = 1, AT_ONCE_TILE = 2 };
#define FIRST_ROW(block) (block * FA_JUDGE_ITEMS_ROW + threadIdx.x / WARP)
#define FIRST_ELEMENT(block) (block * FA_JUDGE_ITEMS_ELEMENT + threadIdx.x)
#define FIRST_TILE(block) (block)
/* That jobs are read alone, and nothing else is written there, the compiler has to be told. */
#define FA_JUDGE_KERNEL(name, kind)                                                                          \
  extern "C" __global__ void __launch_bounds__(FA_JUDGE_THREADS, AT_ONCE_##kind)                             \
      fa_judge_entry_##name(const __grid_constant__ fa_judge_batch batch, const char *__restrict__ jobs) {   \
    int64_t block = blockIdx.x;                                                                              \
    const fa_judge_job *x = job_of_block(&batch, jobs, &block);                                              \
    const int64_t item = FIRST_##kind(block);                                                                \
    if (item < x->n) fa_judge_##name(x, item);                                                               \
  }
#include "ref/cuda/kernels.def"
#else
#define FA_JUDGE_KERNEL(name, kind)                                                                          \
  static void block_of_##name(const fa_judge_batch *batch, const char *jobs, int64_t block) {                \
    const fa_judge_job *x = job_of_block(batch, jobs, &block);                                               \
    const int64_t end = (block + 1) * FA_JUDGE_ITEMS_##kind;                                                 \
    for (int64_t item = block * FA_JUDGE_ITEMS_##kind; item < end && item < x->n; ++item)                    \
      fa_judge_##name(x, item);                                                                              \
  }
#include "ref/cuda/kernels.def"
#undef FA_JUDGE_KERNEL
const fa_judge_function fa_judge_functions[] = {
#define FA_JUDGE_KERNEL(name, kind) block_of_##name,
#include "ref/cuda/kernels.def"
};
#endif
