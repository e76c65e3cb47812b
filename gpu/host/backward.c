#include "gpu/host/backward.h"

#include "gpu/args/problem.h"
#include "gpu/call/check.h"
#include "gpu/plan/backward.h"
#include "gpu/plan/hopper.h"
#include "gpu/host/launch.h"

#include <stdio.h>
#include <string.h>

fa_status fa_host_device_parse(const char *arg, fa_host_device *out, fa_error *err) {
  bool hopper = false;
  *out = (fa_host_device){.limits = {.max_shared_bytes = 227 * 1024}, .n_processors = 3};
  for (const char *at = arg ? arg : ""; *at;) {
    int n = 0, end = 0;
    if (sscanf(at, "shared=%d%n", &n, &end) == 1 && n > 0 && n <= 227)
      out->limits.max_shared_bytes = (size_t)n * 1024;
    else if (sscanf(at, "processors=%d%n", &n, &end) == 1 && n > 0 && n <= 4096)
      out->n_processors = n;
    else if (strncmp(at, "hopper", 6) == 0)
      hopper = true, end = 6;
    else
      end = 0;
    if (end == 0 || (at[end] && at[end] != ','))
      return fa_fail(
          err, FA_ERR_INPUT,
          "backend host takes shared=KIB (1 to 227), processors=N (1 to 4096) and hopper, got \"%s\"", arg);
    at += end + (at[end] == ',');
  }
  out->limits.hopper = hopper ? out->n_processors : 0;
  return FA_OK;
}

bool fa_host_backward_supports(const fa_problem *p, const fa_host_device *d, char *why_not, size_t size) {
  fa_attention a;
  fa_error err = {""};
  if (p->family == FA_FLEX) return fa_args_flex_supported(p, true, &d->limits, why_not, size);
  const char *clause = fa_args_problem(p, &a);
  const bool can = !clause && fa_attention_check_problem(&a, &err) == FA_OK &&
                   fa_backward_supported(&a, &d->limits, &err) == FA_OK;
  snprintf(why_not, size, "%s", can ? "" : clause ? clause : err.text);
  return can;
}

/* The executor reads the boxes where a device has their maps. */
static fa_status launch_hopper(fa_hopper_backward_plan *plan, const fa_tensors *t,
                               const fa_host_scratch *scratch, const fa_run_options *opt, fa_outcome *out,
                               fa_error *err) {
  for (int i = 0; i < FA_HOPPER_BACKWARD_MAPS; ++i)
    memcpy(fa_hopper_backward_map(plan, i), &plan->box[i], sizeof plan->box[i]);
  const fa_simt_launch launch = {.kernel = plan->kernel->entry,
                                 .params = &plan->params,
                                 .name = plan->kernel->name,
                                 .grid = {plan->grid[0], plan->grid[1], plan->grid[2]},
                                 .block = {(unsigned)plan->kernel->n_threads, 1, 1},
                                 .shared_bytes = plan->kernel->shared_bytes,
                                 .cluster = plan->cluster};
  return fa_host_launch(&launch, t, FA_HOST_MAY_WRITE(FA_T_DK) | FA_HOST_MAY_WRITE(FA_T_DV), scratch, opt,
                        out, err);
}

/* hopper: NULL, or what does the main kernel's work. */
static fa_status launch_all(const fa_backward_plan *plan, fa_hopper_backward_plan *hopper,
                            const fa_tensors *t, const fa_host_scratch *scratch, const fa_run_options *opt,
                            fa_outcome *out, fa_error *err) {
  const uint64_t gradients = FA_HOST_MAY_WRITE(FA_T_DQ) | FA_HOST_MAY_WRITE(FA_T_DK) |
                             FA_HOST_MAY_WRITE(FA_T_DV) | FA_HOST_MAY_WRITE(FA_T_DBIAS);
  for (int i = 0; i < plan->n_launches && out->state == FA_SUBJECT_OK; ++i) {
    const fa_backward_launch *l = &plan->launch[i];
    const fa_simt_launch launch = {.kernel = l->kernel.entry,
                                   .params = fa_backward_plan_params(plan, i),
                                   .name = l->kernel.name,
                                   .grid = {l->grid[0], l->grid[1], l->grid[2]},
                                   .block = {l->n_threads, 1, 1},
                                   .shared_bytes = l->shared_bytes};
    if (hopper && i == FA_HOPPER_BACKWARD_LAUNCH) {
      const fa_status status = launch_hopper(hopper, t, scratch, opt, out, err);
      if (status != FA_OK) return status;
      continue;
    }
    const fa_status status = fa_host_launch(&launch, t, gradients, scratch, opt, out, err);
    if (status != FA_OK) return status;
  }
  return FA_OK;
}

fa_status fa_host_backward_run(const fa_problem *p, const fa_host_device *d, fa_tensors *t,
                               const fa_run_options *opt, fa_outcome *out, fa_error *err) {
  fa_attention a;
  fa_gradients g;
  fa_backward_plan plan;
  fa_error refused = {""};
  const char *why = fa_args_tensors(p, t, &a);
  if (!why) why = fa_args_gradients(p, t, &g);
  if (!why && fa_backward_plan_make(&a, &g, &d->limits, d->n_processors, &plan, &refused) != FA_OK)
    why = refused.text;
  if (why) {
    out->state = FA_SUBJECT_REJECTED;
    snprintf(out->text, sizeof out->text, "%s", why);
    return FA_OK;
  }
  fa_host_scratch scratch;
  fa_status status = fa_host_scratch_alloc(plan.workspace_bytes, opt, &scratch, err);
  if (status != FA_OK) return status;
  fa_backward_plan_place(&plan, fa_buffer_payload(&scratch.buffer));
  fa_hopper_backward_plan hopper;
  const bool is_hopper = fa_hopper_backward_make(&a, &g, &plan, &d->limits, &hopper);
  if (is_hopper) plan.params = hopper.params.b;
  snprintf(out->backward_kernel, sizeof out->backward_kernel, "%s", fa_args_backward_name(&a, &g, is_hopper));
  status = launch_all(&plan, is_hopper ? &hopper : NULL, t, &scratch, opt, out, err);
  fa_host_scratch_free(&scratch);
  return status;
}
