/* The names of a launch plan's expressions, and what they are in a call. */
#ifndef FA_GPU_CUBIN_SIZES_H
#define FA_GPU_CUBIN_SIZES_H

#include "cases/tensors/set.h"
#include "cases/vocabulary/problem.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct fa_cubin_sizes {
  const fa_problem *problem;
  const fa_tensors *tensors; /* for "q.stride.0" */
  int n_processors;
} fa_cubin_sizes;

/* fa_size_find and fa_size_value for these. */
int fa_cubin_size_find(const char *name);
int64_t fa_cubin_size_value(const void *sizes, int name);
const char *fa_cubin_size_name(int i); /* of the plain ones, from 0; NULL behind the last */

/* "q" ... ; -1: no tensor of a call, or a captured buffer. */
int fa_cubin_tensor_find(const char *name);

/* Numbers that are no integers: "scale", "scale_log2", "softcap", "empty_lse". */
int fa_cubin_real_find(const char *name);
double fa_cubin_real_value(const fa_problem *p, int name);
const char *fa_cubin_real_name(int i);

#ifdef __cplusplus
}
#endif

#endif
