/* Calls over a KV cache in the host backend: the launches of gpu/plan/cache.h through the executor. */
#ifndef FA_GPU_HOST_CACHE_H
#define FA_GPU_HOST_CACHE_H

#include "gpu/host/backward.h"

fa_status fa_host_cache_run(const fa_problem *p, const fa_host_device *d, fa_tensors *t,
                         const fa_run_options *opt, fa_outcome *out, fa_error *err);

#endif
