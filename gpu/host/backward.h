/* The backward pass of the host backend: the launches of gpu/plan/backward.h through the executor. */
#ifndef FA_GPU_HOST_BACKWARD_H
#define FA_GPU_HOST_BACKWARD_H

#include "gpu/backend.h"
#include "gpu/kernels/registry/flash_forward.h"

/* The device that the host backend plays. */
typedef struct fa_host_device {
  fa_kernel_device limits;
  int n_processors;
} fa_host_device;

/* The defaults, and what stands behind "host:" on the command line changes them: shared=KIB, processors=N,
 * and hopper for the kernels for sm_90a where they can do a call, with commas between. Few processors by default: enough for a deterministic call of few heads to
 * have several accumulators, few enough for blocks to share one. FA_ERR_INPUT. */
fa_status fa_host_device_parse(const char *arg, fa_host_device *out, fa_error *err);

/* True if the kernels exist; else why_not says why. */
bool fa_host_backward_supports(const fa_problem *p, const fa_host_device *d, char *why_not, size_t size);

/* O and LSE in t are those of a forward call. out->kernel is left as it is. */
fa_status fa_host_backward_run(const fa_problem *p, const fa_host_device *d, fa_tensors *t,
                               const fa_run_options *opt, fa_outcome *out, fa_error *err);

#endif
