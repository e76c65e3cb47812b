/* Defaults of gpu/fa.h, the checks on their own, and sizes of workspaces. */
#include "gpu/plan/make.h"

#include <math.h>
#include <string.h>

void fa_attention_init(fa_attention *a) {
  memset(a, 0, sizeof *a);
  a->dtype = FA_F16;
  a->batch = a->heads_q = a->heads_kv = 1;
  a->scale = NAN; /* not set: there is no guessing it */
  a->window_left = a->window_right = -1;
  a->empty_lse = INFINITY;
  a->splits = 1;
  a->sinks_in_lse = true;
}

void fa_gradients_init(fa_gradients *g) {
  memset(g, 0, sizeof *g);
}

void fa_inference_init(fa_inference *kv) {
  memset(kv, 0, sizeof *kv);
  kv->cache_dtype = FA_E4M3;
}

void fa_states_init(fa_states *s) {
  memset(s, 0, sizeof *s);
  s->dtype = s->parts_dtype = FA_F16;
  s->parts = 2;
  s->batch = s->heads = 1;
}

void fa_states_gradients_init(fa_states_gradients *g) {
  memset(g, 0, sizeof *g);
}

fa_strides fa_strides_dense(int64_t rows, int64_t heads, int64_t head_dim) {
  return (fa_strides){rows * heads * head_dim, heads * head_dim, head_dim};
}

/* ---- calls without a device ---- */

static fa_call forward_of(const fa_attention *a) {
  return (fa_call){.kind = FA_CALL_FORWARD, .a = a, .n_processors = FA_PLAN_PROCESSORS};
}
static fa_call backward_of(const fa_attention *a, const fa_gradients *g) {
  return (fa_call){.kind = FA_CALL_BACKWARD, .a = a, .g = g, .n_processors = FA_PLAN_PROCESSORS};
}
static fa_call cache_of(const fa_attention *a, const fa_inference *kv) {
  return (fa_call){.kind = FA_CALL_CACHE, .a = a, .cache = kv, .n_processors = FA_PLAN_PROCESSORS};
}

static fa_call merge_of(const fa_states *s) {
  return (fa_call){.kind = FA_CALL_MERGE, .states = s, .n_processors = FA_PLAN_PROCESSORS};
}
static fa_call merge_backward_of(const fa_states *s, const fa_states_gradients *g) {
  return (fa_call){
      .kind = FA_CALL_MERGE_BACKWARD, .states = s, .states_g = g, .n_processors = FA_PLAN_PROCESSORS};
}

static fa_status check(const fa_call *call, fa_error *err) {
  fa_plan plan;
  return fa_plan_make(call, NULL, &plan, err);
}

fa_status fa_forward_check(const fa_attention *a, fa_error *err) {
  const fa_call call = forward_of(a);
  return check(&call, err);
}

fa_status fa_backward_check(const fa_attention *a, const fa_gradients *g, fa_error *err) {
  const fa_call call = backward_of(a, g);
  return check(&call, err);
}

fa_status fa_forward_kvcache_check(const fa_attention *a, const fa_inference *kv, fa_error *err) {
  const fa_call call = cache_of(a, kv);
  return check(&call, err);
}

fa_status fa_merge_check(const fa_states *s, fa_error *err) {
  const fa_call call = merge_of(s);
  return check(&call, err);
}

fa_status fa_merge_backward_check(const fa_states *s, const fa_states_gradients *g, fa_error *err) {
  const fa_call call = merge_backward_of(s, g);
  return check(&call, err);
}

/* ---- workspaces ---- */

/* sm_90a, sm_90, sm_80 and sm_86, each with and without a compiler. */
static const fa_kernel_device devices[] = {{SIZE_MAX, 0, FA_PLAN_PROCESSORS},
                                           {SIZE_MAX, 1, FA_PLAN_PROCESSORS},
                                           {SIZE_MAX, 0, 0},
                                           {SIZE_MAX, 1, 0},
                                           {163 << 10, 0, 0},
                                           {163 << 10, 1, 0},
                                           {99 << 10, 0, 0},
                                           {99 << 10, 1, 0}};

/* The device is not known here, and which kernels will do the work is up to it: the most that any needs. */
static fa_status most_needed(const fa_call *call, size_t *bytes, fa_error *err) {
  fa_plan plan;
  *bytes = 0;
  const fa_status status = fa_plan_make(call, NULL, &plan, err);
  if (status != FA_OK) return status;
  for (size_t i = 0; i < sizeof devices / sizeof *devices; ++i)
    if (fa_plan_make(call, &devices[i], &plan, NULL) == FA_OK && plan.workspace_bytes > *bytes)
      *bytes = plan.workspace_bytes;
  return FA_OK;
}

fa_status fa_forward_workspace(const fa_attention *a, size_t *bytes, fa_error *err) {
  const fa_call call = forward_of(a);
  return most_needed(&call, bytes, err);
}

fa_status fa_backward_workspace(const fa_attention *a, const fa_gradients *g, size_t *bytes, fa_error *err) {
  const fa_call call = backward_of(a, g);
  return most_needed(&call, bytes, err);
}

fa_status fa_forward_kvcache_workspace(const fa_attention *a, const fa_inference *kv, size_t *bytes,
                                       fa_error *err) {
  const fa_call call = cache_of(a, kv);
  return most_needed(&call, bytes, err);
}

fa_status fa_merge_workspace(const fa_states *s, size_t *bytes, fa_error *err) {
  const fa_call call = merge_of(s);
  return most_needed(&call, bytes, err);
}

fa_status fa_merge_backward_workspace(const fa_states *s, const fa_states_gradients *g, size_t *bytes,
                                      fa_error *err) {
  const fa_call call = merge_backward_of(s, g);
  return most_needed(&call, bytes, err);
}
