#include "gpu/host/cache.h"

#include "gpu/args/problem.h"
#include "gpu/plan/cache.h"
#include "gpu/host/launch.h"

#include <stdio.h>

static fa_status launch_all(const fa_cache_plan *plan, const fa_tensors *t, const fa_host_scratch *scratch,
                            const fa_run_options *opt, fa_outcome *out, fa_error *err) {
  const uint64_t caches = FA_HOST_MAY_WRITE(FA_T_K) | FA_HOST_MAY_WRITE(FA_T_V),
                 outputs = FA_HOST_MAY_WRITE(FA_T_O) | FA_HOST_MAY_WRITE(FA_T_LSE);
  for (int i = 0; i < plan->n_launches && out->state == FA_SUBJECT_OK; ++i) {
    const fa_cache_launch *l = &plan->launch[i];
    const fa_simt_launch launch = {.kernel = l->kernel.entry,
                                   .params = fa_cache_plan_params(plan, i),
                                   .name = l->kernel.name,
                                   .grid = {l->grid[0], l->grid[1], l->grid[2]},
                                   .block = {l->n_threads, 1, 1},
                                   .shared_bytes = l->shared_bytes,
                                   .overlaps = l->overlaps};
    const fa_status status =
        fa_host_launch(&launch, t, l->appends ? caches : outputs, scratch, opt, out, err);
    if (status != FA_OK) return status;
  }
  return FA_OK;
}

fa_status fa_host_cache_run(const fa_problem *p, const fa_host_device *d, fa_tensors *t,
                         const fa_run_options *opt, fa_outcome *out, fa_error *err) {
  fa_attention a;
  fa_inference kv;
  fa_cache_plan plan;
  fa_host_scratch scratch;
  fa_error refused = {""};
  const char *why = fa_args_cache_tensors(p, t, &a, &kv);
  if (!why && fa_cache_plan_make(&a, &kv, &d->limits, d->n_processors, &plan, &refused) != FA_OK)
    why = refused.text;
  if (why) {
    out->state = FA_SUBJECT_REJECTED;
    snprintf(out->text, sizeof out->text, "%s", why);
    return FA_OK;
  }
  fa_args_name_kernel(p, plan.aligned, out->kernel, sizeof out->kernel);
  fa_status status = fa_host_scratch_alloc(plan.workspace_bytes, opt, &scratch, err);
  if (status != FA_OK) return status;
  fa_cache_plan_place(&plan, fa_buffer_payload(&scratch.buffer));
  status = launch_all(&plan, t, &scratch, opt, out, err);
  fa_host_scratch_free(&scratch);
  return status;
}
