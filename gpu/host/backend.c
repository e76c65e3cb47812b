/* The host backend: the CUDA kernels, executed by gpu/simt. */
#include "gpu/backend.h"
#include "gpu/args/calls.h"
#include "gpu/expr/functions.h"
#include "gpu/host/device.h"
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
  if (!fa_args_supported(p, false, &d.limits, reason, reason_size)) return FA_PASS_NONE;
  if (!fa_args_supported(p, true, &d.limits, reason, reason_size)) return FA_PASS_FORWARD;
  return FA_PASS_FORWARD | FA_PASS_BACKWARD;
}

static void host_profile(void *self, const fa_problem *p, fa_profile *out) {
  const fa_host_device d = device_of(self);
  fa_args_profile(p, true, &d.limits, d.n_processors, out);
}

/* ---- a run ---- */

typedef struct host_call {
  fa_host_device device;
  fa_args args;
  fa_plan plan;
  fa_host_scratch scratch;
  fa_args_drop drop;
  bool draws_from_memory; /* dropout's numbers begin where drop says */
} host_call;

static fa_status refuse(fa_outcome *out, const char *why) {
  out->state = FA_SUBJECT_REJECTED;
  snprintf(out->text, sizeof out->text, "%s", why);
  return FA_OK;
}

/* What the flex kernels ask for a call's expressions, also where there are none; *out stays NULL for other kernels. */
static fa_status make_interpreter(const fa_call *call, fa_flex_interpreter **out, fa_error *err) {
  static const fa_flex none;
  bool wanted[FA_FLEX_MAX_BUFFERS] = {false};
  if (!fa_call_is_flex(call)) return FA_OK;
  const fa_flex *f = call->a->flex ? call->a->flex : &none;
  const fa_flex_program *e = f->program;
  for (int k = 0; call->g && k < FA_FLEX_MAX_BUFFERS; ++k) wanted[k] = call->g->dbuffer[k] != NULL;
  return fa_flex_interpreter_make(e ? &e->score : NULL, e ? &e->mask : NULL, e ? e->buffer : NULL,
                                  e ? e->n_buffers : 0, f->buffer, call->g ? wanted : NULL, out, err);
}

/* Plans again, with the workspace, and runs it. Only now is in memory what kernels are to read there. */
static fa_status run_planned(host_call *x, fa_call *call, const fa_problem *p, const fa_tensors *t,
                             const fa_run_options *opt, fa_outcome *out, fa_error *err) {
  fa_flex_interpreter *interpreter = NULL;
  fa_status status = fa_host_scratch_alloc(x->plan.workspace_bytes, opt, &x->scratch, err);
  if (status != FA_OK) return status;
  status = make_interpreter(call, &interpreter, err);
  call->workspace = fa_buffer_payload(&x->scratch.buffer);
  if (interpreter) call->functions = fa_flex_interpreter_functions(interpreter);
  if (status == FA_OK) status = fa_plan_make(call, &x->device.limits, &x->plan, err);
  if (x->draws_from_memory) {
    x->scratch.drop = &x->drop;
    if (!call->g) x->drop = fa_args_drop_of(p);
  }
  if (status == FA_OK) status = fa_host_run_plan(&x->plan, t, &x->scratch, opt, out, err);
  fa_flex_interpreter_free(interpreter);
  fa_host_scratch_free(&x->scratch);
  return status;
}

/* Every other schedule has dropout's seed and offset in memory, and the backward pass those that the forward pass
 * wrote: the same pairs as by numbers of the call. */
static void choose_drop(host_call *x, const fa_problem *p, const fa_run_options *opt) {
  x->draws_from_memory =
      p->dropout.p > 0 && opt->schedule_seed % 2 == 1 && (opt->passes & FA_PASS_FORWARD) != 0;
  if (!x->draws_from_memory) return;
  x->drop = fa_args_drop_decoy(p);
  fa_args_drop_from(&x->drop, &x->args.a);
}

static fa_status run_passes(host_call *x, const fa_problem *p, const fa_tensors *t, const fa_run_options *opt,
                            fa_outcome *out, fa_error *err) {
  fa_error refused = {""};
  fa_status status = FA_OK;
  choose_drop(x, p, opt);
  if (fa_plan_make(&x->args.forward, &x->device.limits, &x->plan, &refused) != FA_OK)
    return refuse(out, refused.text);
  fa_args_name(p, x->plan.name, x->plan.aligned, out->kernel, sizeof out->kernel);
  if (opt->passes & FA_PASS_FORWARD) status = run_planned(x, &x->args.forward, p, t, opt, out, err);
  if (status != FA_OK || out->state != FA_SUBJECT_OK || !(opt->passes & FA_PASS_BACKWARD)) return status;
  if (x->draws_from_memory) fa_args_drop_as_used(&x->drop, &x->args.a);
  if (fa_plan_make(&x->args.backward, &x->device.limits, &x->plan, &refused) != FA_OK)
    return refuse(out, refused.text);
  snprintf(out->backward_kernel, sizeof out->backward_kernel, "%s", x->plan.name);
  return run_planned(x, &x->args.backward, p, t, opt, out, err);
}

static fa_status host_run(void *self, const fa_problem *p, fa_tensors *t, const fa_run_options *opt,
                          fa_outcome *out, fa_error *err) {
  host_call x = {.device = device_of(self)};
  const char *why = NULL;
  memset(out, 0, sizeof *out);
  if (!fa_args_supported(p, false, &x.device.limits, out->text, sizeof out->text))
    return fa_fail(err, FA_ERR_UNSUPPORTED, "backend host: %s", out->text);
  fa_status status =
      fa_args_make(p, t, opt->passes & FA_PASS_BACKWARD, x.device.n_processors, &x.args, &why, err);
  if (status == FA_OK) status = why ? refuse(out, why) : run_passes(&x, p, t, opt, out, err);
  fa_args_free(&x.args);
  return status;
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
