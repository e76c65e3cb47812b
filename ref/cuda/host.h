/* The judge's kernels as functions of the host, in the order of kernels.def: each does what a block of threads does. */
#ifndef FA_REF_CUDA_HOST_H
#define FA_REF_CUDA_HOST_H

#include "ref/cuda/batch.h"
#include "ref/cuda/job.h"

/* Threads of a block, and items that they do: a row is a warp's, an element a thread's, a tile all threads'. */
enum {
  FA_JUDGE_THREADS = 256,
  FA_JUDGE_ITEMS_ROW = FA_JUDGE_THREADS / 32,
  FA_JUDGE_ITEMS_ELEMENT = FA_JUDGE_THREADS,
  FA_JUDGE_ITEMS_TILE = 1
};

#ifdef __cplusplus
extern "C" {
#endif

typedef void (*fa_judge_function)(const fa_judge_batch *batch, const char *jobs, int64_t block);
extern const fa_judge_function fa_judge_functions[];

#ifdef __cplusplus
}
#endif

#endif
