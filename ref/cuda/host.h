/* The judge's kernels as functions of the host, in the order of kernels.def: each does one item. */
#ifndef FA_REF_CUDA_HOST_H
#define FA_REF_CUDA_HOST_H

#include "ref/cuda/job.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef void (*fa_judge_function)(const fa_judge_job *x, int64_t item);
extern const fa_judge_function fa_judge_functions[];

#ifdef __cplusplus
}
#endif

#endif
