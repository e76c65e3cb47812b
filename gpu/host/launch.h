/* Plans through the executor, between the harness's tensors. */
#ifndef FA_GPU_HOST_LAUNCH_H
#define FA_GPU_HOST_LAUNCH_H

#include "cases/tensors/guard.h"
#include "gpu/args/drop.h"
#include "gpu/backend.h"
#include "gpu/plan/make.h"
#include "gpu/simt/launch.h"

/* A call's workspace. Nobody promises zeros: it starts as NaN, and what is read before it was written shows.
 */
typedef struct fa_host_scratch {
  fa_buffer buffer;
  uint8_t *written;
  fa_args_drop *drop; /* of the caller: where dropout's numbers begin; NULL: the call says so itself */
} fa_host_scratch;

fa_status fa_host_scratch_alloc(size_t bytes, const fa_run_options *opt, fa_host_scratch *out, fa_error *err);
void fa_host_scratch_free(fa_host_scratch *s);

/* Runs a plan that was made for this scratch memory, until a launch misbehaves, which *out says then. Tensors
 * that a launch is not to write it may read. */
fa_status fa_host_run_plan(const fa_plan *plan, const fa_tensors *t, const fa_host_scratch *scratch,
                           const fa_run_options *opt, fa_outcome *out, fa_error *err);

#endif
