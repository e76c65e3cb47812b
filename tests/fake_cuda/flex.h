/* Flex kernels on the fake driver: the executor's ask an interpreter where those of a device have compiled
 * expressions, so whoever runs a case lends one to the driver. */
#ifndef FA_TESTS_FAKE_CUDA_FLEX_H
#define FA_TESTS_FAKE_CUDA_FLEX_H

#include "cases/tensors/set.h"
#include "gpu/expr/functions.h"
#include "gpu/simt/launch.h"

/* For the expressions of p, buffers of t, and gradients where t has them; until fake_flex_end. Nothing for
 * other families. */
fa_status fake_flex_begin(const fa_problem *p, const fa_tensors *t, fa_error *err);
void fake_flex_end(void);

/* ---- for tests/fake_cuda/device.c ---- */

/* The host's version of a flex kernel, or NULL. */
fa_simt_kernel fake_flex_entry(const char *name);

/* Where the lent functions read, which is not on the device: at most FA_MAX_CAPTURES ranges. Returns how
 * many. */
int fake_flex_ranges(fa_simt_range *out);

/* What a kernel of that name is to be launched with: params, or a copy with the functions in it (none, where
 * nobody has lent any), which stays until the next call. */
const void *fake_flex_params(const char *name, const void *params);

#endif
