/* KV cache: rotary embedding and appending of new keys. */
#include "gpu/ref_f32/parts.h"

#include <math.h>
#include <string.h>

static int32_t valid_keys(const fa_tensors *t, int64_t b) {
  const fa_tensor *len = &t->t[FA_T_CACHE_SEQLENS];
  int32_t x;
  memcpy(&x, len->data + b * len->stride[0] * 4, 4);
  return x;
}

static float table_at(const fa_tensor *t, int64_t position, int64_t k) {
  float x;
  int64_t at = position * t->stride[0] + k * t->stride[1];
  fa_f32_load(t->dtype, t->data + at * (int64_t)fa_dtype_size(t->dtype), 1, 1, &x);
  return x;
}

void fa_f32_rotate(const fa_problem *p, const fa_tensors *t, int64_t position, float *x) {
  const int64_t half = p->kvcache.rotary_dim / 2;
  for (int64_t k = 0; k < half; ++k) {
    float cosine = table_at(&t->t[FA_T_ROTARY_COS], position, k);
    float sine = table_at(&t->t[FA_T_ROTARY_SIN], position, k);
    float *a = &x[p->kvcache.rotary_interleaved ? 2 * k : k];
    float *b = &x[p->kvcache.rotary_interleaved ? 2 * k + 1 : k + half];
    float first = fmaf(*a, cosine, -(*b * sine));
    *b = fmaf(*a, sine, *b * cosine);
    *a = first;
  }
  fa_f32_round(p->dtype, 2 * half, x);
}

int64_t fa_f32_query_position(const fa_problem *p, const fa_tensors *t, const fa_f32_sequence *e, int64_t i) {
  /* Without a causal or window mask every row has the same position, as in the original interface. */
  return valid_keys(t, e->b) + (p->mask.type == FA_MASK_NONE ? 0 : i);
}

void fa_f32_append(const fa_problem *p, fa_tensors *t, float *row) {
  const fa_tensor *k_new = &t->t[FA_T_K_NEW], *v_new = &t->t[FA_T_V_NEW];
  const fa_tensor *k = &t->t[FA_T_K], *v = &t->t[FA_T_V];
  if (p->kvcache.n_new == 0 || !k_new->data) return;
  for (int64_t b = 0; b < p->batch; ++b) {
    fa_f32_sequence e = fa_f32_sequence_make(p, t, b);
    for (int64_t n = 0; n < p->kvcache.n_new; ++n)
      for (int64_t h = 0; h < p->heads_kv; ++h) {
        int64_t at = valid_keys(t, b) + n;
        /* the new rows are indexed by the sequence itself, not through the cache: fa_f32_q_row fits */
        fa_f32_load(k_new->dtype, fa_f32_q_row(p, k_new, &e, h, n), k_new->stride[3], p->head_dim, row);
        if (p->kvcache.rotary_dim > 0) fa_f32_rotate(p, t, at, row);
        fa_f32_quantise_k(p, t, k, &e, h, at, row);
        fa_f32_store(k->dtype, fa_f32_k_row(p, t, k, &e, h, at), k->stride[3], p->head_dim, row);
        fa_f32_load(v_new->dtype, fa_f32_q_row(p, v_new, &e, h, n), v_new->stride[3], p->head_dim_v, row);
        fa_f32_quantise_k(p, t, v, &e, h, at, row);
        fa_f32_store(v->dtype, fa_f32_k_row(p, t, v, &e, h, at), v->stride[3], p->head_dim_v, row);
      }
  }
}
