/* Flex kernels on the fake driver. The executor's kernels call an interpreter where those of a device have
 * compiled expressions, so whoever runs a case passes an interpreter to the driver. */
#ifndef FA_TESTS_FAKE_CUDA_FLEX_H
#define FA_TESTS_FAKE_CUDA_FLEX_H

#include "cases/tensors/set.h"
#include "cases/vocabulary/problem.h"
#include "gpu/expr/functions.h"
#include "gpu/kernels/registry/kernel.h"
#include "gpu/simt/launch.h"

/* For the expressions of p, buffers of t, and gradients if t has them; valid until fake_flex_end. Does
 * nothing for other families. */
fa_status fake_flex_begin(const fa_problem *p, const fa_tensors *t, fa_error *err);
void fake_flex_end(void);

/* ---- for tests/fake_cuda/device.c ---- */

/* Memory that the interpreter reads and that is not on the device: at most FA_MAX_CAPTURES ranges. Returns
 * their number. */
int fake_flex_ranges(fa_simt_range *out);

/* The parameters for launching a kernel: params, or a copy with the interpreter's functions
 * (none without an interpreter), valid until the next call. */
const void *fake_flex_params(const fa_kernel *kernel, const void *params);

#endif
