/* The flash kernels of a backward call (gpu/kernels/params/flash_backward_grids.h), in the steps in which a
 * plan is made of them: others may take the main kernel's place. */
#ifndef FA_GPU_PLAN_FAST_BACKWARD_H
#define FA_GPU_PLAN_FAST_BACKWARD_H

#include "gpu/kernels/params/flash_backward.h"
#include "gpu/kernels/params/flash_backward_grids.h"
#include "gpu/plan/parts.h"

typedef struct fa_fast_backward {
  fa_flash_backward_kernels kernels;
  fa_backward_grids grids;
  fa_backward_params *params; /* of all launches; in the plan */
  int64_t dbias_at, n_floats; /* of the workspace: where sums of dbias are, and all of it */
} fa_fast_backward;

/* The kernels; FA_ERR_UNSUPPORTED: none was built, or none fits the device. */
fa_status fa_fast_backward_find(const fa_attention *a, bool aligned, const fa_kernel_device *device,
                                fa_flash_backward_kernels *out, fa_error *err);

/* Of x, whose kernels are there, all the rest; params but for what is in the workspace. n_processors: for the
 * accumulators of a deterministic call. */
void fa_fast_backward_prepare(const fa_call *call, int n_processors, fa_plan *out, fa_fast_backward *x);

/* workspace: of n_floats; NULL: not there yet. */
void fa_fast_backward_place(fa_fast_backward *x, void *workspace);

/* Adds the launch that makes the gradient of the sinks, where it is wanted; x has its place, and prepare ran before. */
void fa_fast_backward_add_dsinks(const fa_call *call, const fa_fast_backward *x, fa_plan *out);

#endif
