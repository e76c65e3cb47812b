/* What a call's attention says to kernels of every family. */
#include "gpu/call/check.h"
#include "gpu/plan/parts.h"

#include <math.h>
#include <string.h>

static bool has_linear_dropout(const fa_attention *a) {
  return a->dropout_p > 0 && a->dropout_scheme == FA_DROPOUT_LINEAR;
}

fa_kernel_ability fa_kernel_wanted(const fa_attention *a, bool aligned) {
  const int head_dim = (int)a->head_dim, head_dim_v = (int)fa_attention_head_dim_v(a);
  const bool linear = has_linear_dropout(a);
  return (fa_kernel_ability){.bf16 = a->dtype == FA_BF16,
                             .eight = a->e4m3,
                             .amax = a->e4m3 && a->amax_p,
                             .head_dim = head_dim > head_dim_v ? head_dim : head_dim_v,
                             .narrow = head_dim < head_dim_v ? head_dim : head_dim_v,
                             .unaligned = !aligned,
                             .alibi = a->alibi_slopes != NULL,
                             .softcap = a->softcap > 0,
                             .dropout = a->dropout_p > 0 && !linear,
                             .p_debug = a->p_debug != NULL,
                             .bias = a->bias != NULL,
                             .linear_dropout = linear,
                             .chunk = a->chunk > 0,
                             .mask_bits = a->mask_bits != NULL,
                             .sinks = a->sinks != NULL};
}

/* n: elements in 16 bytes. */
static bool are_aligned(const fa_attention *a, const void *data, fa_strides s, int64_t n) {
  return (uintptr_t)data % 16 == 0 && s.row % n == 0 && s.head % n == 0 &&
         (fa_attention_is_varlen(a) || s.batch % n == 0);
}

bool fa_rows_are_aligned(const fa_attention *a, const void *data, fa_strides s) {
  return are_aligned(a, data, s, 16 / fa_attention_element_bytes(a));
}

bool fa_cache_is_aligned(const fa_attention *a, const void *data, fa_strides s) {
  const int64_t n = 16 / fa_attention_element_bytes(a);
  return fa_rows_are_aligned(a, data, s) && s.batch % n == 0;
}

bool fa_bias_is_aligned(const fa_attention *a, const void *data, fa_strides s) {
  const int64_t n = 16 / fa_attention_element_bytes(a);
  return a->seqlen_k % n == 0 && s.batch % n == 0 && fa_rows_are_aligned(a, data, s);
}

bool fa_attention_is_aligned(const fa_attention *a) {
  const int64_t n = 16 / fa_attention_operand_bytes(a);
  return a->head_dim % n == 0 && fa_attention_head_dim_v(a) % n == 0 &&
         are_aligned(a, a->q, a->q_stride, n) && are_aligned(a, a->k, a->k_stride, n) &&
         are_aligned(a, a->v, a->v_stride, n) && fa_rows_are_aligned(a, a->o, a->o_stride);
}

static int window_bound(int64_t bound, int64_t length) {
  return bound < 0 || bound >= length ? -1 : (int)bound; /* one that reaches over everything is none */
}

/* The last row is level with the last key (bottom-right) or the first with the first (top-left). */
static void fill_mask(const fa_attention *a, fa_attention_params *p) {
  p->top_left = a->mask_top_left;
  p->window_left = window_bound(a->window_left, a->mask_top_left ? a->seqlen_q : a->seqlen_k);
  p->window_right = window_bound(a->window_right, a->mask_top_left ? a->seqlen_k : a->seqlen_q);
  const int64_t longest = a->seqlen_q > a->seqlen_k ? a->seqlen_q : a->seqlen_k;
  p->chunk = a->chunk < longest ? (int)a->chunk : 0; /* one of all positions hides nothing */
  p->mask_bits = a->mask_bits;
  p->mask_indptr = a->mask_indptr;
}

fa_kernel_strides fa_kernel_strides_of(fa_strides s, bool has_batch) {
  return (fa_kernel_strides){has_batch ? s.batch : 0, s.row, s.head};
}

static void fill_tensors(const fa_attention *a, bool has_batch, fa_attention_params *p) {
  p->q = (const uint16_t *)a->q;
  p->k = (const uint16_t *)a->k;
  p->v = (const uint16_t *)a->v;
  p->o = (uint16_t *)a->o;
  p->lse = a->lse;
  p->q_stride = fa_kernel_strides_of(a->q_stride, has_batch);
  p->k_stride = fa_kernel_strides_of(a->k_stride, has_batch);
  p->v_stride = fa_kernel_strides_of(a->v_stride, has_batch);
  p->o_stride = fa_kernel_strides_of(a->o_stride, has_batch);
  p->lse_stride = fa_kernel_strides_of(a->lse_stride, fa_attention_has_lse_batch(a));
  p->lse_padded = a->lse_padded;
  p->cu_seqlens_q = a->cu_seqlens_q;
  p->cu_seqlens_k = a->cu_seqlens_k;
  p->bias = a->bias;
  p->bias_stride = fa_kernel_strides_of(a->bias_stride, true); /* of packed sequences too */
  p->bias_aligned = fa_bias_is_aligned(a, a->bias, a->bias_stride);
  p->seqused_k = a->seqused_k;
  p->leftpad_k = a->leftpad_k;
}

/* docs/reference/semantics.md, "Dropout". */
static void fill_dropout(const fa_attention *a, fa_attention_params *p) {
  const uint32_t limit = (uint8_t)floor((double)(1.0f - (float)a->dropout_p) * 255.0);
  p->dropout_limit = limit | limit << 16;
  p->dropout_scale = (float)(1.0 / (1.0 - a->dropout_p));
  p->dropout_seed = a->dropout_seed;
  p->dropout_offset = a->dropout_offset;
  p->dropout_seed_at = a->dropout_seed_at;
  p->dropout_offset_at = a->dropout_offset_at;
  p->dropout_used = a->dropout_p > 0 ? a->dropout_used : NULL;
  p->dropout_p = (float)a->dropout_p;
  p->dropout_linear = has_linear_dropout(a);
  p->p_debug = (uint16_t *)a->p_debug;
  p->p_rows = (int)((a->seqlen_q + 127) / 128 * 128);
  p->p_keys = (int)((a->seqlen_k + 127) / 128 * 128);
}

void fa_attention_params_fill(const fa_attention *a, fa_attention_params *p) {
  memset(p, 0, sizeof *p);
  fill_tensors(a, !fa_attention_is_varlen(a), p);
  p->seqlen_q = (int)a->seqlen_q;
  p->seqlen_k = (int)a->seqlen_k;
  p->head_dim = (int)a->head_dim;
  p->head_dim_v = (int)fa_attention_head_dim_v(a);
  p->heads_q = (int)a->heads_q;
  p->heads_per_kv = (int)(a->heads_q / a->heads_kv);
  fill_mask(a, p);
  p->score_sign = a->scale > 0 ? 1.0f : a->scale < 0 ? -1.0f : 0.0f;
  const double scale = a->scale == 0 ? 1.0 : fabs(a->scale);
  p->scale = (float)scale;
  p->scale_log2 = (float)(scale * 1.4426950408889634);
  p->empty_lse = a->empty_lse;
  p->softcap = (float)a->softcap;
  p->alibi_slopes = a->alibi_slopes;
  p->alibi_batch_stride = a->alibi_batch_stride;
  p->descale = (fa_kernel_descales){a->q_descale, a->k_descale, a->v_descale, a->descale_batch_stride,
                                    a->descale_head_stride};
  p->sinks = a->sinks;
  p->sinks_in_lse = !a->sinks || a->sinks_in_lse;
  fill_dropout(a, p);
}

void fa_plan_add_amax_clear(const fa_attention *a, fa_plan *out) {
  if (!a->amax_p) return;
  fa_kernel_amax *p = fa_plan_params(out, sizeof *p);
  *p = (fa_kernel_amax){a->amax_p, a->amax_o};
  fa_plan_add(out, *fa_amax_clear_find(), 1, 1, 1, FA_AMAX_THREADS, 0, p)->writes = FA_WRITES_AMAX;
}

bool fa_gradients_are_aligned(const fa_attention *a, const fa_gradients *g) {
  return fa_attention_is_aligned(a) && fa_rows_are_aligned(a, g->d_o, g->do_stride) &&
         fa_rows_are_aligned(a, g->dq, g->dq_stride) && fa_rows_are_aligned(a, g->dk, g->dk_stride) &&
         fa_rows_are_aligned(a, g->dv, g->dv_stride);
}

int64_t fa_attention_widest(const fa_attention *a) {
  const int64_t head_dim_v = fa_attention_head_dim_v(a);
  return a->head_dim > head_dim_v ? a->head_dim : head_dim_v;
}
