#include "gpu/host/flex.h"

#include "gpu/args/problem.h"
#include "gpu/plan/flex.h"
#include "gpu/plan/hopper.h"
#include "gpu/expr/functions.h"
#include "gpu/host/launch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct flex_run {
  const fa_problem *p;
  const fa_host_device *d;
  fa_tensors *t;
  const fa_run_options *opt;
  fa_outcome *out;
  fa_attention a;
  fa_gradients g;
  fa_flex_plan plan;
} flex_run;

/* Tensors that a launch may write: lists go to the workspace alone. */
static uint64_t writable(const fa_flex_launch *l) {
  uint64_t buffers = 0;
  for (int k = 0; k < FA_MAX_CAPTURES; ++k) buffers |= FA_HOST_MAY_WRITE(FA_T_DBUFFER_0 + k);
  switch (l->params_kind) {
  case FA_FLEX_PARAMS_LISTS:
    return 0;
  case FA_FLEX_PARAMS_EXACT:
    return buffers;
  case FA_FLEX_PARAMS_FORWARD:
  case FA_FLEX_PARAMS_HOPPER:
    return FA_HOST_MAY_WRITE(FA_T_O) | FA_HOST_MAY_WRITE(FA_T_LSE);
  default:
    return buffers | FA_HOST_MAY_WRITE(FA_T_DQ) | FA_HOST_MAY_WRITE(FA_T_DK) | FA_HOST_MAY_WRITE(FA_T_DV) |
           FA_HOST_MAY_WRITE(FA_T_DBIAS);
  }
}

static fa_status launch_all(flex_run *r, const fa_host_scratch *scratch, fa_error *err) {
  for (int i = 0; i < r->plan.n_launches && r->out->state == FA_SUBJECT_OK; ++i) {
    fa_flex_launch *l = &r->plan.launch[i];
    /* The executor reads the boxes where a device has their maps. */
    for (int m = 0; m < l->n_maps; ++m) memcpy(&l->params.maps[m], &l->box[m], sizeof l->box[m]);
    const bool counts = l->params_kind == FA_FLEX_PARAMS_HOPPER && r->opt->schedule_seed % 2;
    if (counts) l->params.hopper.tiles.counter = fa_hopper_host_counter();
    const fa_simt_launch launch = {.kernel = l->kernel.entry,
                                   .params = &l->params,
                                   .name = l->kernel.name,
                                   .grid = {l->grid[0], l->grid[1], l->grid[2]},
                                   .block = {l->n_threads, 1, 1},
                                   .shared_bytes = l->shared_bytes};
    const fa_status status = fa_host_launch(&launch, r->t, writable(l), scratch, r->opt, r->out, err);
    if (counts) fa_host_check_counter(l->params.hopper.tiles.counter, l->kernel.name, r->out);
    if (status != FA_OK) return status;
  }
  return FA_OK;
}

static fa_status plan(flex_run *r, bool backward, const fa_flex_functions *functions, void *workspace,
                      fa_error *err) {
  return backward
             ? fa_flex_backward_plan_make(&r->a, &r->g, &r->d->limits, functions, workspace, &r->plan, err)
             : fa_flex_forward_plan_make(&r->a, &r->d->limits, functions, workspace, &r->plan, err);
}

/* *refused: why the call cannot be planned, and then nothing was launched. */
static fa_status run_pass(flex_run *r, bool backward, fa_error *refused, fa_error *err) {
  const fa_flex_program *program = r->a.flex->program;
  fa_flex_interpreter *interpreter = NULL;
  fa_host_scratch scratch;
  if (plan(r, backward, NULL, NULL, refused) != FA_OK) return FA_OK;
  fa_status status = fa_host_scratch_alloc(r->plan.workspace_bytes, r->opt, &scratch, err);
  if (status != FA_OK) return status;
  status = fa_flex_interpreter_make(program ? &program->score : NULL, program ? &program->mask : NULL,
                                    program ? program->buffer : NULL, program ? program->n_buffers : 0,
                                    r->a.flex->buffer, backward ? r->plan.wanted : NULL, &interpreter, err);
  if (status == FA_OK)
    status = plan(r, backward, fa_flex_interpreter_functions(interpreter), fa_buffer_payload(&scratch.buffer),
                  err);
  if (backward)
    snprintf(r->out->backward_kernel, sizeof r->out->backward_kernel, "%s",
             fa_args_backward_name(&r->a, &r->g, r->plan.is_hopper));
  if (status == FA_OK) status = launch_all(r, &scratch, err);
  fa_flex_interpreter_free(interpreter);
  fa_host_scratch_free(&scratch);
  return status;
}

static fa_status run_passes(flex_run *r, fa_error *refused, fa_error *err) {
  fa_status status = plan(r, false, NULL, NULL, refused);
  if (status != FA_OK) return FA_OK;
  fa_args_name_kernel(r->p, r->plan.aligned, r->out->kernel, sizeof r->out->kernel);
  if (r->plan.is_hopper) fa_hopper_rename(r->out->kernel, sizeof r->out->kernel);
  if (r->opt->passes & FA_PASS_FORWARD) status = run_pass(r, false, refused, err);
  if (status != FA_OK || r->out->state != FA_SUBJECT_OK || !(r->opt->passes & FA_PASS_BACKWARD) ||
      refused->text[0])
    return status;
  const char *why = fa_args_gradients(r->p, r->t, &r->g);
  if (why) {
    snprintf(refused->text, sizeof refused->text, "%s", why);
    return FA_OK;
  }
  return run_pass(r, true, refused, err);
}

fa_status fa_host_flex_run(const fa_problem *p, const fa_host_device *d, fa_tensors *t,
                           const fa_run_options *opt, fa_outcome *out, fa_error *err) {
  fa_args_flex x;
  fa_error refused = {""};
  fa_status status = fa_args_flex_make(p, &x, err);
  if (status != FA_OK) return status;
  flex_run *r = aligned_alloc(_Alignof(flex_run), sizeof *r); /* maps of tensors are aligned to 64 bytes */
  if (!r) {
    fa_args_flex_free(&x);
    return fa_fail(err, FA_ERR_MEMORY, "backend host: out of memory");
  }
  *r = (flex_run){.p = p, .d = d, .t = t, .opt = opt, .out = out};
  const char *why = fa_args_flex_tensors(p, t, &x, &r->a);
  if (!why) status = run_passes(r, &refused, err);
  if (why || refused.text[0]) {
    out->state = FA_SUBJECT_REJECTED;
    snprintf(out->text, sizeof out->text, "%s", why ? why : refused.text);
  }
  free(r);
  fa_args_flex_free(&x);
  return status;
}
