/* Split keys of a forward call without a cache: part of gpu/plan/make.h. */
#ifndef FA_GPU_PLAN_SPLIT_H
#define FA_GPU_PLAN_SPLIT_H

#include "gpu/plan/parts.h"

/* As the call asks for or, if it leaves that open, chosen from its sizes; 1: the keys are not split. */
int fa_split_count(const fa_call *call, const fa_kernel_device *device);

/* Whether there are kernels for a call that asks for splits, if its rows are aligned. */
fa_status fa_split_supported(const fa_attention *a, const fa_kernel_device *device, fa_error *err);

/* For arguments that passed all checks, with out->aligned set. */
fa_status fa_split_add_forward(const fa_call *call, const fa_kernel_device *device, int n_splits,
                               fa_plan *out, fa_error *err);

#endif
