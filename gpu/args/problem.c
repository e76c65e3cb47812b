#include "gpu/args/problem.h"

#include <math.h>
#include <stddef.h>

void fa_args_common(const fa_problem *p, fa_attention *a) {
  static const int32_t present[1];
  static const float slopes[1], bias[1];
  static float amax[1];
  static const uint8_t bits[1];
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
  a->chunk = fa_mask_chunk(&p->mask);
  if (p->mask_bits.present) {
    a->mask_bits = bits;
    a->mask_indptr = present;
  }
  a->empty_lse = p->empty_lse == FA_EMPTY_POS_INF   ? INFINITY
                 : p->empty_lse == FA_EMPTY_NEG_INF ? -INFINITY
                                                    : 0.0f;
  a->lse_padded = p->lse_padded;
  a->deterministic = p->deterministic;
  a->dropout_p = p->dropout.p;
  a->dropout_scheme = p->family == FA_MEMEFF ? FA_DROPOUT_LINEAR : FA_DROPOUT_TILED;
  a->dropout_seed = p->dropout.seed;
  a->dropout_offset = p->dropout.offset;
  a->e4m3 = p->quantized.present && p->family != FA_KVCACHE;
  if (p->quantized.amax) a->amax_p = a->amax_o = amax;
  if (p->bias.present) a->bias = bias;
  if (p->leftpad_k.n) a->leftpad_k = present;
  if (p->alibi.present) a->alibi_slopes = slopes;
  if (p->sinks.present) {
    a->sinks = slopes;
    a->sinks_in_lse = p->sinks.in_lse;
  }
}

void fa_args_attention(const fa_problem *p, fa_attention *a) {
  static const int32_t present[1];
  static max_align_t debug;
  fa_args_common(p, a);
  if (fa_problem_is_varlen(p)) {
    a->cu_seqlens_q = a->cu_seqlens_k = present;
    a->total_q = fa_problem_total_q(p);
    a->total_k = fa_problem_total_k(p);
  }
  if (p->seqused_k.n) a->seqused_k = present;
  if (p->return_softmax) a->p_debug = &debug;
}

const char *fa_args_problem(const fa_problem *p, fa_attention *a) {
  if (p->family == FA_KVCACHE) return "the KV cache has no backward pass"; /* nor this forward */
  fa_args_attention(p, a);
  if (p->family == FA_FLASH)
    a->splits = p->splits; /* memeff calls have splits in their backward pass alone */
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

/* LSE is [B, H, S] or, packed, [H, total]. */
static fa_strides lse_strides_of(const fa_tensor *t) {
  if (t->rank == 3) return (fa_strides){t->stride[0], t->stride[2], t->stride[1]};
  return (fa_strides){0, t->stride[1], t->stride[0]};
}

/* [B, S, H, D] or [total, H, D] of the problem's sizes. */
static const char *check_rows_of(const fa_problem *p, const fa_tensor *x, fa_dtype dtype, bool is_query,
                                 int64_t head_dim) {
  const bool varlen = fa_problem_is_varlen(p);
  const int rank = varlen ? 3 : 4;
  if (!x->data) return "q, k, v, o or a gradient of them is missing";
  if (x->dtype != dtype) return "q, k, v, o or a gradient has another dtype than the problem";
  if (x->rank != rank) return "q, k, v, o or a gradient has the wrong rank";
  if (x->shape[rank - 1] != head_dim || x->shape[rank - 2] != (is_query ? p->heads_q : p->heads_kv))
    return "q, k, v, o or a gradient has the wrong number of heads or head_dim";
  if (x->stride[rank - 1] != 1) return "head_dim is not contiguous in q, k, v, o or a gradient";
  if (varlen ? x->shape[0] < (is_query ? fa_problem_total_q(p) : fa_problem_total_k(p))
             : x->shape[0] != p->batch || x->shape[1] != (is_query ? p->seqlen_q : p->seqlen_k))
    return "q, k, v, o or a gradient has the wrong batch or length";
  return NULL;
}

/* The same of the problem's type. */
static const char *check_rows(const fa_problem *p, const fa_tensor *x, bool is_query, int64_t head_dim) {
  return check_rows_of(p, x, p->dtype, is_query, head_dim);
}

/* Q, K or V. */
static const char *check_operand(const fa_problem *p, const fa_tensor *x, bool is_query, int64_t head_dim) {
  const bool eight = p->quantized.present && (!is_query || p->quantized.queries);
  return check_rows_of(p, x, eight ? p->quantized.dtype : p->dtype, is_query, head_dim);
}

static const char *check_lse(const fa_problem *p, const fa_tensor *x) {
  if (!x->data || x->dtype != FA_F32 || x->rank != (fa_problem_is_varlen(p) && !p->lse_padded ? 2 : 3))
    return "lse or dlse is missing, not f32, or of the wrong rank";
  return NULL;
}

static const char *take_amax(const fa_tensors *t, fa_attention *a) {
  a->amax_p = (float *)t->t[FA_T_AMAX_P].data;
  a->amax_o = (float *)t->t[FA_T_AMAX_O].data;
  return a->amax_p && a->amax_o ? NULL : "amax_p or amax_o is missing";
}

const char *fa_args_outer_tensors(const fa_problem *p, const fa_tensors *t, fa_attention *a) {
  const fa_tensor *x = t->t;
  const char *why = check_operand(p, &x[FA_T_Q], true, p->head_dim);
  if (!why) why = check_rows(p, &x[FA_T_O], true, p->head_dim_v);
  if (!why) why = check_lse(p, &x[FA_T_LSE]);
  if (!why && a->bias) why = check_bias(p, &x[FA_T_BIAS]);
  if (!why && a->amax_p) why = take_amax(t, a);
  if (why) return why;
  if (a->leftpad_k && !x[FA_T_LEFTPAD_K].data) return "leftpad_k is missing";
  if (a->alibi_slopes && !x[FA_T_ALIBI_SLOPES].data) return "alibi slopes are missing";
  if (a->sinks && !x[FA_T_SINKS].data) return "sinks are missing";
  if (a->mask_bits && (!x[FA_T_MASK_BITS].data || !x[FA_T_MASK_INDPTR].data))
    return "mask_bits or mask_indptr is missing";
  a->q = x[FA_T_Q].data;
  a->o = x[FA_T_O].data;
  a->lse = (float *)x[FA_T_LSE].data;
  a->q_stride = strides_of(&x[FA_T_Q]);
  a->o_stride = strides_of(&x[FA_T_O]);
  a->lse_stride = lse_strides_of(&x[FA_T_LSE]);
  a->leftpad_k = (const int32_t *)x[FA_T_LEFTPAD_K].data;
  a->mask_bits = (const uint8_t *)x[FA_T_MASK_BITS].data;
  a->mask_indptr = (const int32_t *)x[FA_T_MASK_INDPTR].data;
  a->sinks = (const float *)x[FA_T_SINKS].data;
  a->bias = x[FA_T_BIAS].data;
  if (a->bias) a->bias_stride = bias_strides_of(&x[FA_T_BIAS]);
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

/* [1], or [B, Hk]. */
static const char *take_descales(const fa_tensors *t, fa_attention *a) {
  const fa_tensor *q = &t->t[FA_T_Q_DESCALE], *k = &t->t[FA_T_K_DESCALE], *v = &t->t[FA_T_V_DESCALE];
  if (!q->data || !k->data || !v->data) return "descales of q, k or v are missing";
  a->q_descale = (const float *)q->data;
  a->k_descale = (const float *)k->data;
  a->v_descale = (const float *)v->data;
  a->descale_batch_stride = q->rank == 2 ? q->stride[0] : 0;
  a->descale_head_stride = q->rank == 2 ? q->stride[1] : 0;
  return NULL;
}

const char *fa_args_attention_tensors(const fa_problem *p, const fa_tensors *t, fa_attention *a) {
  const fa_tensor *x = t->t;
  const char *why = fa_args_outer_tensors(p, t, a);
  if (!why) why = check_operand(p, &x[FA_T_K], false, p->head_dim);
  if (!why) why = check_operand(p, &x[FA_T_V], false, p->head_dim_v);
  if (!why && a->e4m3) why = take_descales(t, a);
  if (why) return why;
  if (a->cu_seqlens_q && (!x[FA_T_CU_SEQLENS_Q].data || !x[FA_T_CU_SEQLENS_K].data))
    return "cu_seqlens is missing";
  if (a->seqused_k && !x[FA_T_SEQUSED_K].data) return "seqused_k is missing";
  if (a->p_debug && (!x[FA_T_P_DEBUG].data || x[FA_T_P_DEBUG].dtype != p->dtype))
    return "p_debug is missing or of another dtype";
  a->p_debug = x[FA_T_P_DEBUG].data; /* always dense */
  a->k = x[FA_T_K].data;
  a->v = x[FA_T_V].data;
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
  if (p->sinks.grad) g->dsinks = (float *)x[FA_T_DSINKS].data;
  g->num_splits_key = p->splits > 1 ? p->splits : 0;
  return fa_args_flex_gradients(p, t, g);
}
