/* Calls of the flex family on the host backend: the launches of gpu/plan/flex.h through the executor, with
 * an interpreter for the expressions. */
#ifndef FA_GPU_HOST_FLEX_H
#define FA_GPU_HOST_FLEX_H

#include "gpu/host/backward.h"

/* The passes that opt asks for; backward reads the set's own O and LSE. */
fa_status fa_host_flex_run(const fa_problem *p, const fa_host_device *d, fa_tensors *t,
                           const fa_run_options *opt, fa_outcome *out, fa_error *err);

#endif
