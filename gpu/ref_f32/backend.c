/* The `ref-f32` backend: a sanity subject. It computes docs/reference/semantics.md in plain float32 loops, so a case
 * that fails here is a fault of the judge or of this backend, never of a clever kernel. */
#include "gpu/backend.h"
#include "cases/arithmetic/fields.h"
#include "gpu/ref_f32/parts.h"

#include <stdio.h>
#include <string.h>

static fa_status open_(const char *arg, void **self, fa_error *err) {
  *self = NULL;
  return arg && *arg ? fa_fail(err, FA_ERR_INPUT, "ref-f32:%s: this backend takes no argument", arg) : FA_OK;
}

static void close_(void *self) {
  (void)self;
}

static void describe(void *self, fa_backend_info *out) {
  (void)self;
  *out = (fa_backend_info){.name = fa_backend_ref_f32.name, .usable = true};
  snprintf(out->device, sizeof out->device, "CPU, one thread");
}

static unsigned supports(void *self, const fa_problem *p, char *reason, size_t reason_size) {
  (void)self;
  if (p->kvcache.present) {
    snprintf(reason, reason_size, "the KV cache has no backward pass");
    return FA_PASS_FORWARD;
  }
  return FA_PASS_FORWARD | FA_PASS_BACKWARD;
}

/* Operands are multiplied by their descales as they are loaded, in f32. */
static void add_descales(const fa_problem *p, fa_profile *out) {
  fa_arithmetic a;
  if (!p->quantized.present || !fa_arithmetic_named("simt-f32", p->dtype, &a)) return;
  a.k_descaled = a.v_descaled = FA_FORMAT_F32;
  fa_arithmetic_add_descales(&a, p->dtype, p->quantized.queries, fa_problem_has_descales_of_keys(p), out);
  if (p->quantized.queries)
    out->name = "f32-of-eight-bits"; /* P is not rounded, and O is, to 16: no band of statistics */
}

static void profile(void *self, const fa_problem *p, fa_profile *out) {
  (void)self;
  *out = fa_profile_get("simt-f32", fa_f32_p_dtype(p));
  add_descales(p, out);
  out->block_n = FA_F32_TILE_N;
  out->max_splits = p->splits > 1 ? (int)p->splits : 1;
}

static fa_status merge(const fa_problem *p, fa_tensors *t, unsigned passes, fa_error *err) {
  fa_status status = FA_OK;
  if (passes & FA_PASS_FORWARD) status = fa_f32_merge_forward(p, t, err);
  if (status == FA_OK && (passes & FA_PASS_BACKWARD)) status = fa_f32_merge_backward(p, t, err);
  return status;
}

static fa_status run(void *self, const fa_problem *p, fa_tensors *t, const fa_run_options *opt,
                     fa_outcome *out, fa_error *err) {
  char reason[256];
  *out = (fa_outcome){.state = FA_SUBJECT_OK};
  snprintf(out->kernel, sizeof out->kernel, "ref_f32");
  if (opt->passes & ~supports(self, p, reason, sizeof reason)) {
    out->state = FA_SUBJECT_REJECTED;
    snprintf(out->text, sizeof out->text, "%s", reason);
    return FA_OK;
  }
  fa_status status = FA_OK;
  if (p->family == FA_MERGE) return merge(p, t, opt->passes, err);
  if (opt->passes & FA_PASS_FORWARD) status = fa_f32_forward(p, t, err);
  if (status == FA_OK && (opt->passes & FA_PASS_BACKWARD)) status = fa_f32_backward(p, t, err);
  return status;
}

const fa_backend fa_backend_ref_f32 = {
    .name = "ref-f32",
    .what = "plain float32 loops on the CPU: a sanity subject for the harness itself",
    .open = open_,
    .close = close_,
    .describe = describe,
    .supports = supports,
    .profile = profile,
    .run = run,
};
