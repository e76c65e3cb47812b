#include "gpu/args/problem.h"

#include "gpu/call/check.h"
#include "gpu/call/choose.h"
#include "gpu/call/check_cache.h"
#include "gpu/plan/cache.h"
#include "gpu/plan/forward.h"
#include "gpu/plan/backward.h"
#include "gpu/plan/hopper.h"
#include "gpu/kernels/registry/flex.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>

void fa_args_common(const fa_problem *p, fa_attention *a) {
  static const int32_t present[1];
  static const float slopes[1];
  fa_attention_init(a);
  a->dtype = p->dtype;
  a->batch = p->batch;
  a->heads_q = p->heads_q;
  a->heads_kv = p->heads_kv;
  a->seqlen_q = p->seqlen_q;
  a->seqlen_k = p->seqlen_k;
  a->head_dim = p->head_dim;
  a->head_dim_v = p->head_dim_v;
  a->scale = p->scale;
  a->softcap = p->softcap;
  a->mask_top_left = p->mask.type != FA_MASK_NONE && p->mask.align == FA_ALIGN_TOP_LEFT;
  const fa_window window = fa_mask_window(&p->mask);
  a->window_left = window.left;
  a->window_right = window.right;
  a->empty_lse = p->empty_lse == FA_EMPTY_POS_INF   ? INFINITY
                 : p->empty_lse == FA_EMPTY_NEG_INF ? -INFINITY
                                                    : 0.0f;
  a->deterministic = p->deterministic;
  if (p->leftpad_k.n) a->leftpad_k = present;
  if (p->alibi.present) a->alibi_slopes = slopes;
}

void fa_args_attention(const fa_problem *p, fa_attention *a) {
  static const int32_t present[1];
  static const float bias[1];
  static max_align_t debug;
  fa_args_common(p, a);
  a->dropout_p = p->dropout.p;
  a->dropout_scheme = p->family == FA_MEMEFF ? FA_DROPOUT_LINEAR : FA_DROPOUT_TILED;
  a->dropout_seed = p->dropout.seed;
  a->dropout_offset = p->dropout.offset;
  if (fa_problem_is_varlen(p)) {
    a->cu_seqlens_q = a->cu_seqlens_k = present;
    a->total_q = fa_problem_total_q(p);
    a->total_k = fa_problem_total_k(p);
  }
  if (p->seqused_k.n) a->seqused_k = present;
  if (p->bias.present) a->bias = bias;
  if (p->return_softmax) a->p_debug = &debug;
}

const char *fa_args_problem(const fa_problem *p, fa_attention *a) {
  if (p->family == FA_KVCACHE) return "the KV cache has no backward pass"; /* nor this forward */
  if (p->family == FA_FLEX) return "expressions and block lists are not looked at here";
  if (p->splits > 1 && p->family == FA_FLASH) return "split keys are not in the forward kernel yet";
  fa_args_attention(p, a);
  return NULL;
}

/* ---- tensors ---- */

static fa_strides strides_of(const fa_tensor *t) {
  if (t->rank == 4) return (fa_strides){t->stride[0], t->stride[1], t->stride[2]};
  return (fa_strides){0, t->stride[0], t->stride[1]};
}

/* A bias and its gradient are [b|1, h|1, q|1, k]; an axis of one element serves all. */
static fa_strides bias_strides_of(const fa_tensor *t) {
  int64_t s[3];
  for (int i = 0; i < 3; ++i) s[i] = t->shape[i] == 1 ? 0 : t->stride[i];
  return (fa_strides){s[0], s[2], s[1]};
}

static const char *check_bias(const fa_problem *p, const fa_tensor *x) {
  const fa_bias *b = &p->bias;
  if (!x->data || x->dtype != p->dtype || x->rank != 4)
    return "the bias or its gradient is missing, or has another dtype or rank than the problem says";
  if (x->shape[0] != (b->per_batch ? p->batch : 1) || x->shape[1] != (b->per_head ? p->heads_q : 1) ||
      x->shape[2] != (b->per_query ? p->seqlen_q : 1) || x->shape[3] != p->seqlen_k)
    return "the bias or its gradient has another shape than the problem says";
  return p->seqlen_k > 1 && x->stride[3] != 1 ? "keys are not contiguous in the bias or its gradient" : NULL;
}

/* LSE is [B, H, S] or [H, total]. */
static fa_strides lse_strides_of(const fa_tensor *t) {
  if (t->rank == 3) return (fa_strides){t->stride[0], t->stride[2], t->stride[1]};
  return (fa_strides){0, t->stride[1], t->stride[0]};
}

/* [B, S, H, D] or [total, H, D] of the problem's sizes and type. */
static const char *check_rows(const fa_problem *p, const fa_tensor *x, bool is_query, int64_t head_dim) {
  const bool varlen = fa_problem_is_varlen(p);
  const int rank = varlen ? 3 : 4;
  if (!x->data) return "q, k, v, o or a gradient of them is missing";
  if (x->dtype != p->dtype) return "q, k, v, o or a gradient has another dtype than the problem";
  if (x->rank != rank) return "q, k, v, o or a gradient has the wrong rank";
  if (x->shape[rank - 1] != head_dim || x->shape[rank - 2] != (is_query ? p->heads_q : p->heads_kv))
    return "q, k, v, o or a gradient has the wrong number of heads or head_dim";
  if (x->stride[rank - 1] != 1) return "head_dim is not contiguous in q, k, v, o or a gradient";
  if (varlen ? x->shape[0] < (is_query ? fa_problem_total_q(p) : fa_problem_total_k(p))
             : x->shape[0] != p->batch || x->shape[1] != (is_query ? p->seqlen_q : p->seqlen_k))
    return "q, k, v, o or a gradient has the wrong batch or length";
  return NULL;
}

static const char *check_lse(const fa_problem *p, const fa_tensor *x) {
  if (!x->data || x->dtype != FA_F32 || x->rank != (fa_problem_is_varlen(p) ? 2 : 3))
    return "lse or dlse is missing, not f32, or of the wrong rank";
  return NULL;
}

const char *fa_args_outer_tensors(const fa_problem *p, const fa_tensors *t, fa_attention *a) {
  const fa_tensor *x = t->t;
  const char *why = check_rows(p, &x[FA_T_Q], true, p->head_dim);
  if (!why) why = check_rows(p, &x[FA_T_O], true, p->head_dim_v);
  if (!why) why = check_lse(p, &x[FA_T_LSE]);
  if (why) return why;
  if (a->leftpad_k && !x[FA_T_LEFTPAD_K].data) return "leftpad_k is missing";
  if (a->alibi_slopes && !x[FA_T_ALIBI_SLOPES].data) return "alibi slopes are missing";
  a->q = x[FA_T_Q].data;
  a->o = x[FA_T_O].data;
  a->lse = (float *)x[FA_T_LSE].data;
  a->q_stride = strides_of(&x[FA_T_Q]);
  a->o_stride = strides_of(&x[FA_T_O]);
  a->lse_stride = lse_strides_of(&x[FA_T_LSE]);
  a->leftpad_k = (const int32_t *)x[FA_T_LEFTPAD_K].data;
  if (a->alibi_slopes) {
    const fa_tensor *s = &x[FA_T_ALIBI_SLOPES];
    a->alibi_slopes = (const float *)s->data;
    a->alibi_batch_stride = s->rank == 2 ? s->stride[0] : 0;
  }
  return NULL;
}

const char *fa_args_tensors(const fa_problem *p, const fa_tensors *t, fa_attention *a) {
  const char *why = fa_args_problem(p, a);
  return why ? why : fa_args_attention_tensors(p, t, a);
}

const char *fa_args_attention_tensors(const fa_problem *p, const fa_tensors *t, fa_attention *a) {
  const fa_tensor *x = t->t;
  const char *why = fa_args_outer_tensors(p, t, a);
  if (!why) why = check_rows(p, &x[FA_T_K], false, p->head_dim);
  if (!why) why = check_rows(p, &x[FA_T_V], false, p->head_dim_v);
  if (!why && a->bias) why = check_bias(p, &x[FA_T_BIAS]);
  if (why) return why;
  if (a->cu_seqlens_q && (!x[FA_T_CU_SEQLENS_Q].data || !x[FA_T_CU_SEQLENS_K].data))
    return "cu_seqlens is missing";
  if (a->seqused_k && !x[FA_T_SEQUSED_K].data) return "seqused_k is missing";
  if (a->p_debug && (!x[FA_T_P_DEBUG].data || x[FA_T_P_DEBUG].dtype != p->dtype))
    return "p_debug is missing or of another dtype";
  a->p_debug = x[FA_T_P_DEBUG].data; /* always dense */
  a->k = x[FA_T_K].data;
  a->v = x[FA_T_V].data;
  a->bias = x[FA_T_BIAS].data;
  if (a->bias) a->bias_stride = bias_strides_of(&x[FA_T_BIAS]);
  a->k_stride = strides_of(&x[FA_T_K]);
  a->v_stride = strides_of(&x[FA_T_V]);
  a->cu_seqlens_q = (const int32_t *)x[FA_T_CU_SEQLENS_Q].data;
  a->cu_seqlens_k = (const int32_t *)x[FA_T_CU_SEQLENS_K].data;
  a->seqused_k = (const int32_t *)x[FA_T_SEQUSED_K].data;
  return NULL;
}

const char *fa_args_gradients(const fa_problem *p, const fa_tensors *t, fa_gradients *g) {
  const fa_tensor *x = t->t;
  fa_gradients_init(g);
  const char *why = check_rows(p, &x[FA_T_DO], true, p->head_dim_v);
  if (!why) why = check_rows(p, &x[FA_T_DQ], true, p->head_dim);
  if (!why) why = check_rows(p, &x[FA_T_DK], false, p->head_dim);
  if (!why) why = check_rows(p, &x[FA_T_DV], false, p->head_dim_v);
  if (!why && p->bias.present && p->bias.grad) why = check_bias(p, &x[FA_T_DBIAS]);
  if (!why && x[FA_T_DLSE].data) why = check_lse(p, &x[FA_T_DLSE]);
  if (why) return why;
  g->d_o = x[FA_T_DO].data;
  g->d_lse = (const float *)x[FA_T_DLSE].data;
  g->dq = x[FA_T_DQ].data;
  g->dk = x[FA_T_DK].data;
  g->dv = x[FA_T_DV].data;
  g->do_stride = strides_of(&x[FA_T_DO]);
  if (g->d_lse) g->dlse_stride = lse_strides_of(&x[FA_T_DLSE]);
  g->dq_stride = strides_of(&x[FA_T_DQ]);
  g->dk_stride = strides_of(&x[FA_T_DK]);
  g->dv_stride = strides_of(&x[FA_T_DV]);
  if (p->bias.present && p->bias.grad) {
    g->dbias = x[FA_T_DBIAS].data;
    g->dbias_stride = bias_strides_of(&x[FA_T_DBIAS]);
  }
  g->num_splits_key = p->splits > 1 ? p->splits : 0;
  return fa_args_flex_gradients(p, t, g);
}

static bool cache_supported(const fa_problem *p, const fa_kernel_device *device, char *why, size_t why_size) {
  fa_attention a;
  fa_inference kv;
  fa_error err = {""};
  fa_args_cache(p, &a, &kv);
  const bool can =
      fa_cache_check_problem(&a, &kv, &err) == FA_OK && fa_cache_kernel_for(&a, true, device, &err);
  snprintf(why, why_size, "%s", err.text);
  return can;
}

bool fa_args_forward_supported(const fa_problem *p, const fa_kernel_device *device, char *why,
                               size_t why_size) {
  fa_attention a;
  fa_error err = {""};
  if (p->family == FA_KVCACHE) return cache_supported(p, device, why, why_size);
  if (p->family == FA_FLEX) return fa_args_flex_supported(p, false, device, why, why_size);
  const char *clause = fa_args_problem(p, &a);
  const bool can =
      !clause && fa_attention_check_problem(&a, &err) == FA_OK && fa_forward_kernel(&a, true, device, &err);
  snprintf(why, why_size, "%s", clause ? clause : err.text);
  return can;
}

/* The memeff kernels keep P and dS in float and multiply by three tf32 products whatever the elements are, and
 * subtract the maximum before they scale to base 2. */
static void memeff_profile(const fa_attention *a, bool hopper, const fa_kernel_device *device, fa_profile *out) {
  *out = fa_profile_get("3xtf32", FA_F32);
  out->exp_scaled = false;
  out->dq_atomic = fa_backward_adds_rows(a, device);
  /* what is added is scaled already */
  out->floor_dq = out->dq_atomic && a->scale != 0 ? 0x1p-126 / fabs(a->scale) : 0;
  out->block_n = fa_forward_block_n(a, NULL);
  if (!hopper) out->mma_block = 2; /* three tf32 products of two blocks of four to every eight columns */
}

/* A gradient of the bias that is summed is added up in memory, or comes from a memeff kernel, whatever kernels
 * the others come from. */
static void add_dbias(const fa_problem *p, const fa_attention *a, bool hopper, fa_profile *out) {
  const fa_bias *b = &p->bias;
  if (b->per_batch && b->per_head && b->per_query) return;
  const fa_gradients g = {.dbias_stride = {b->per_batch, b->per_query, b->per_head}};
  if (fa_backward_adds_dbias(a, &g)) {
    fa_profile_add_bias_in_memory(out);
    return;
  }
  const fa_profile memeff = fa_profile_get("3xtf32", FA_F32);
  out->mma_block = hopper ? memeff.mma_block : 2; /* as memeff_profile */
  out->mma_extra_bits = memeff.mma_extra_bits;
}

/* Whether a call is one for the sm_90a kernels, if its rows are aligned. */
static bool may_be_hopper_flex(const fa_problem *p, const fa_kernel_device *device, int *block_n) {
  static max_align_t memory[16];
  fa_attention a;
  fa_flex flex;
  fa_hopper_plan plan;
  fa_args_attention(p, &a);
  fa_flex_init(&flex);
  a.flex = &flex;
  a.q = a.k = a.v = a.o = memory;
  a.q_stride = fa_strides_dense(p->seqlen_q, p->heads_q, p->head_dim);
  a.o_stride = fa_strides_dense(p->seqlen_q, p->heads_q, p->head_dim_v);
  a.k_stride = fa_strides_dense(p->seqlen_k, p->heads_kv, p->head_dim);
  a.v_stride = fa_strides_dense(p->seqlen_k, p->heads_kv, p->head_dim_v);
  if (!fa_hopper_flex_make(&a, device, &plan)) return false;
  if (plan.kernel->block_n < *block_n) *block_n = plan.kernel->block_n;
  return true;
}

/* The portable kernels of f32 are wide ones; those of 16-bit elements round P and dS to them. They add
 * nothing up in memory but the gradients of buffers. Where those for sm_90a may do the work, they may too.
 * Expressions of 16-bit calls go through the device's approximations whatever the kernels. */
static void flex_profile(const fa_problem *p, bool hopper, const fa_kernel_device *device, fa_profile *out) {
  const fa_kernel *k = fa_flex_forward_find(p->dtype, p->head_dim, p->head_dim_v, device);
  const fa_profile memeff = fa_profile_get("3xtf32", FA_F32);
  int block_n = k ? k->block_n : out->block_n;
  const bool is_fast = may_be_hopper_flex(p, device, &block_n);
  if (p->dtype == FA_F32 && !is_fast)
    *out = memeff;
  else
    out->name = "flex-hopper"; /* errors may be smaller than its own: no lower edge of their statistics */
  if (!is_fast) {
    out->exp_scaled = out->dq_atomic = false;
    out->floor_dq = 0;
  }
  out->mma_block = hopper ? memeff.mma_block : 2; /* as memeff_profile */
  out->mma_extra_bits = memeff.mma_extra_bits;
  out->fast_functions = p->dtype != FA_F32;
  out->dbuffer_atomic = true;
  out->block_n = block_n;
}

/* Splits are combined where there are several. */
static void cache_profile(const fa_problem *p, const fa_kernel_device *device, int n_processors,
                          fa_profile *out) {
  fa_attention a;
  fa_inference kv;
  fa_args_cache(p, &a, &kv);
  int splits = 1;
  for (int aligned = 0; aligned < 2; ++aligned) {
    const fa_cache_kernel *k = fa_cache_kernel_for(&a, aligned, device, NULL);
    if (!k) continue;
    const int n = fa_cache_splits(&a, &kv, k, n_processors);
    if (n > splits) splits = n;
    if (aligned == 0 || k->block_n < out->block_n) out->block_n = k->block_n;
  }
  out->max_splits = splits;
}

void fa_args_profile(const fa_problem *p, bool hopper, const fa_kernel_device *device, int n_processors,
                     fa_profile *out) {
  fa_attention a;
  *out = fa_profile_get(hopper ? "mma-hopper" : "mma-ampere", p->dtype);
  out->gqa_partials_in_io = false; /* a group's dK and dV are summed in float */
  if (p->family == FA_KVCACHE) cache_profile(p, device, n_processors, out);
  if (p->family == FA_FLEX) flex_profile(p, hopper, device, out);
  if (fa_args_problem(p, &a)) return;
  if (fa_choose_forward(&a) == FA_KERNELS_MEMEFF) {
    memeff_profile(&a, hopper, device, out);
    return;
  }
  const bool linear = a.dropout_p > 0 && a.dropout_scheme == FA_DROPOUT_LINEAR;
  out->max_rounded =
      hopper && (p->head_dim > 128 || p->head_dim_v > 128); /* hopper_forward_config's LAZY = 2 */
  if (a.bias || linear) out->exp_scaled = false; /* the biased and mixed kernels subtract the maximum first */
  if (p->bias.present && p->bias.grad) add_dbias(p, &a, hopper, out);
  const int block_n = fa_forward_block_n(&a, device);
  if (block_n) out->block_n = block_n;
  const int block_m = fa_backward_adds_keys(&a, device, n_processors);
  if (block_m) fa_profile_add_keys_in_memory(out, block_m);
}
