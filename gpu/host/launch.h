/* Launches of the host backend: kernels in the executor, between the harness's tensors. */
#ifndef FA_GPU_HOST_LAUNCH_H
#define FA_GPU_HOST_LAUNCH_H

#include "cases/tensors/guard.h"
#include "gpu/backend.h"
#include "gpu/simt/launch.h"

/* A call's workspace. Nobody promises zeros: it starts as NaN, and what is read before it was written shows.
 */
typedef struct fa_host_scratch {
  fa_buffer buffer;
  uint8_t *written;
} fa_host_scratch;

fa_status fa_host_scratch_alloc(size_t bytes, const fa_run_options *opt, fa_host_scratch *out, fa_error *err);
void fa_host_scratch_free(fa_host_scratch *s);

/* Runs *what, of which the kernel, params, name, grid, block and shared_bytes count. writable: a bit for each
 * tensor that it may write, FA_HOST_MAY_WRITE(FA_T_O) | ...; the others it may only read. scratch: it may
 * write, or NULL. */
#define FA_HOST_MAY_WRITE(id) ((uint64_t)1 << (id))
fa_status fa_host_launch(const fa_simt_launch *what, const fa_tensors *t, uint64_t writable,
                         const fa_host_scratch *scratch, const fa_run_options *opt, fa_outcome *out,
                         fa_error *err);

/* After a launch of the kernel `name` whose blocks took their tiles off a counter (fa_hopper_host_counter;
 * -1: they did not): it has to be 0 again, for the launch that gets it next, and *out says if it is not. */
void fa_host_check_counter(int counter, const char *name, fa_outcome *out);

#endif
