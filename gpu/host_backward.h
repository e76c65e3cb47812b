/* The backward pass of the host backend: the launches of gpu/fa_plan_backward.h through the executor. */
#ifndef FA_GPU_HOST_BACKWARD_H
#define FA_GPU_HOST_BACKWARD_H

#include "gpu/backend.h"

/* True if the kernels exist; else why_not says why. */
bool fa_host_backward_supports(const fa_problem *p, char *why_not, size_t size);

/* O and LSE in t are those of a forward call. out->kernel is left as it is. */
fa_status fa_host_backward_run(const fa_problem *p, fa_tensors *t, const fa_run_options *opt, fa_outcome *out,
                               fa_error *err);

#endif
