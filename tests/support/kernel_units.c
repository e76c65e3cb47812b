#include "tests/support/kernel_units.h"

#include "gpu/plan/make.h"

#include <stdio.h>
#include <string.h>

static const fa_kernel_device device = {.max_shared_bytes = 227 << 10, .compiles = 1};

/* Addresses that are never dereferenced. */
static char memory[1 << 17] __attribute__((aligned(256)));

static void fill_call(fa_attention *a, fa_gradients *g, fa_dtype dtype, int head_dim, unit_feature feature) {
  fa_attention_init(a);
  fa_gradients_init(g);
  a->dtype = dtype;
  a->seqlen_q = a->seqlen_k = 16;
  a->head_dim = head_dim;
  a->scale = 0.1;
  a->q = memory + (feature == UNIT_UNALIGNED ? 2 : 0);
  a->k = a->v = a->o = memory;
  a->lse = (float *)memory;
  a->q_stride = a->k_stride = a->v_stride = a->o_stride = fa_strides_dense(16, 1, head_dim);
  a->lse_stride = (fa_strides){16, 1, 16};
  if (feature == UNIT_SOFTCAP) a->softcap = 30;
  if (feature == UNIT_DROPOUT) a->dropout_p = 0.1;
  g->d_o = g->dq = g->dk = g->dv = memory;
  g->do_stride = g->dq_stride = g->dk_stride = g->dv_stride = a->q_stride;
}

/* The kernels of a call's plan. */
static int put_plan(const fa_call *call, kernel_unit *out, int max) {
  fa_plan plan;
  int n = 0;
  if (fa_plan_make(call, &device, &plan, NULL) != FA_OK) return 0;
  for (; n < plan.n_launches && n < max; ++n) {
    const fa_launch *l = &plan.launch[n];
    snprintf(out[n].name, sizeof out[n].name, "%s", l->kernel.name);
    out[n].recipe = l->kernel.recipe;
    out[n].shared_bytes = l->shared_bytes;
  }
  return n;
}

int kernel_units_of(fa_dtype dtype, int head_dim, unit_feature feature, bool backward, kernel_unit *out,
                    int max) {
  fa_attention a;
  fa_gradients g;
  fill_call(&a, &g, dtype, head_dim, feature);
  const fa_call call = {.kind = backward ? FA_CALL_BACKWARD : FA_CALL_FORWARD,
                        .a = &a,
                        .g = &g,
                        .n_processors = FA_PLAN_PROCESSORS};
  return put_plan(&call, out, max);
}

int kernel_units_over_cache(fa_dtype dtype, int head_dim, unit_feature feature, kernel_unit *out, int max) {
  static const int32_t ints[1];
  fa_attention a;
  fa_gradients ignored;
  fa_inference kv;
  fill_call(&a, &ignored, dtype, head_dim, feature);
  fa_inference_init(&kv);
  kv.k_cache = kv.v_cache = memory;
  kv.k_new = kv.v_new = memory;
  kv.k_cache_stride = kv.v_cache_stride = kv.k_new_stride = kv.v_new_stride = a.q_stride;
  kv.cache_rows = kv.n_new = 1;
  kv.cache_seqlens = ints;
  kv.splits = 2;
  const fa_call call = {.kind = FA_CALL_CACHE, .a = &a, .cache = &kv, .n_processors = FA_PLAN_PROCESSORS};
  return put_plan(&call, out, max);
}
