/* The host backend: the CUDA kernels, executed by gpu/simt. */
#include "gpu/args/problem.h"
#include "gpu/backend.h"
#include "gpu/call/check.h"
#include "gpu/plan/forward.h"
#include "gpu/plan/hopper.h"
#include "gpu/host/backward.h"
#include "gpu/host/flex.h"
#include "gpu/host/cache.h"
#include "gpu/host/launch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static fa_status host_open(const char *arg, void **self, fa_error *err) {
  fa_host_device *d = malloc(sizeof *d);
  if (!d) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  const fa_status status = fa_host_device_parse(arg, d, err);
  if (status != FA_OK) {
    free(d);
    return status;
  }
  *self = d;
  return FA_OK;
}

static void host_close(void *self) {
  free(self);
}

/* self may be NULL: the defaults. */
static fa_host_device device_of(const void *self) {
  fa_host_device d;
  if (self) return *(const fa_host_device *)self;
  fa_host_device_parse(NULL, &d, NULL);
  return d;
}

static void host_describe(void *self, fa_backend_info *out) {
  (void)self;
  memset(out, 0, sizeof *out);
  out->name = fa_backend_host.name;
  out->usable = true;
  snprintf(out->device, sizeof out->device, "SIMT executor on the CPU, Hopper tensor-core arithmetic");
  snprintf(out->driver, sizeof out->driver, "none");
}

static unsigned host_supports(void *self, const fa_problem *p, char *reason, size_t reason_size) {
  const fa_host_device d = device_of(self);
  if (!fa_args_forward_supported(p, &d.limits, reason, reason_size)) return FA_PASS_NONE;
  if (!fa_host_backward_supports(p, &d, reason, reason_size)) return FA_PASS_FORWARD;
  return FA_PASS_FORWARD | FA_PASS_BACKWARD;
}

static void host_profile(void *self, const fa_problem *p, fa_profile *out) {
  const fa_host_device d = device_of(self);
  fa_args_profile(p, true, &d.limits, d.n_processors, out);
}

static fa_status run_forward(const fa_forward_plan *plan, const fa_tensors *t, const fa_run_options *opt,
                             fa_outcome *out, fa_error *err) {
  const fa_simt_launch launch = {.kernel = plan->kernel->entry,
                                 .params = &plan->params,
                                 .name = plan->kernel->name,
                                 .grid = {plan->grid[0], plan->grid[1], plan->grid[2]},
                                 .block = {(unsigned)plan->kernel->n_threads, 1, 1},
                                 .shared_bytes = plan->kernel->shared_bytes};
  const uint64_t outputs =
      FA_HOST_MAY_WRITE(FA_T_O) | FA_HOST_MAY_WRITE(FA_T_LSE) | FA_HOST_MAY_WRITE(FA_T_P_DEBUG);
  return fa_host_launch(&launch, t, outputs, NULL, opt, out, err);
}

/* The executor reads the boxes where a device has their maps. */
static fa_status run_hopper(fa_hopper_plan *plan, const fa_tensors *t, const fa_run_options *opt,
                            fa_outcome *out, fa_error *err) {
  for (int i = 0; i < 4; ++i) memcpy(fa_hopper_map(plan, i), &plan->box[i], sizeof plan->box[i]);
  plan->params.tiles.counter = opt->schedule_seed % 2 ? fa_hopper_host_counter() : -1;
  const fa_simt_launch launch = {.kernel = plan->kernel->entry,
                                 .params = &plan->params,
                                 .name = plan->kernel->name,
                                 .grid = {plan->n_blocks, 1, 1},
                                 .block = {(unsigned)plan->kernel->n_threads, 1, 1},
                                 .shared_bytes = plan->kernel->shared_bytes};
  const uint64_t outputs = FA_HOST_MAY_WRITE(FA_T_O) | FA_HOST_MAY_WRITE(FA_T_LSE);
  const fa_status status = fa_host_launch(&launch, t, outputs, NULL, opt, out, err);
  fa_host_check_counter(plan->params.tiles.counter, launch.name, out);
  return status;
}

static fa_status host_run(void *self, const fa_problem *p, fa_tensors *t, const fa_run_options *opt,
                          fa_outcome *out, fa_error *err) {
  const fa_host_device d = device_of(self);
  memset(out, 0, sizeof *out);
  if (!fa_args_forward_supported(p, &d.limits, out->text, sizeof out->text))
    return fa_fail(err, FA_ERR_UNSUPPORTED, "backend host: %s", out->text);
  if (p->family == FA_KVCACHE) return fa_host_cache_run(p, &d, t, opt, out, err);
  if (p->family == FA_FLEX) return fa_host_flex_run(p, &d, t, opt, out, err);
  fa_attention a;
  fa_forward_plan plan;
  fa_error refused = {""};
  const char *why = fa_args_tensors(p, t, &a);
  if (!why && fa_forward_plan_make(&a, &d.limits, &plan, &refused) != FA_OK) why = refused.text;
  if (why) {
    out->state = FA_SUBJECT_REJECTED;
    snprintf(out->text, sizeof out->text, "%s", why);
    return FA_OK;
  }
  fa_args_name_kernel(p, plan.aligned, out->kernel, sizeof out->kernel);
  fa_status status = FA_OK;
  fa_hopper_plan hopper;
  const bool is_hopper = !plan.empty && fa_hopper_plan_make(&a, &d.limits, &hopper);
  if (is_hopper) fa_hopper_rename(out->kernel, sizeof out->kernel);
  if ((opt->passes & FA_PASS_FORWARD) && !plan.empty)
    status = is_hopper ? run_hopper(&hopper, t, opt, out, err) : run_forward(&plan, t, opt, out, err);
  if (status != FA_OK || out->state != FA_SUBJECT_OK || !(opt->passes & FA_PASS_BACKWARD)) return status;
  return fa_host_backward_run(p, &d, t, opt, out, err);
}

const fa_backend fa_backend_host = {
    .name = "host",
    .what = "the CUDA kernels, run thread by thread on the CPU with checks for races, deadlocks and bounds; "
            "host:shared=99 has "
            "that much shared memory, host:processors=132 as many to fill, "
            "host:hopper the kernels for sm_90a",
    .open = host_open,
    .close = host_close,
    .describe = host_describe,
    .supports = host_supports,
    .profile = host_profile,
    .run = host_run,
};
