/* Strided tensors of any element type, one row at a time, as contiguous doubles. */
#include "cases/tensors/mixed.h"
#include "cases/tensors/nibbles.h"
#include "ref/engine/call.h"
#include "ref/engine/descale.h"
#include "ref/engine/topk.h"
#include "ref/math/rows.h"

#include <string.h>

void fa_ref_load_row(const fa_tensor *t, const char *at, int64_t stride, int64_t n, double *out) {
  int64_t step = stride * (int64_t)fa_dtype_size(t->dtype);
  if (t->dtype == FA_F16 || t->dtype == FA_BF16) {
    bool half = t->dtype == FA_F16;
    if (stride == 1 && (uintptr_t)at % 2 == 0) {
      fa_rows_best()->widen((const uint16_t *)(const void *)at, n, !half, out);
      return;
    }
    for (int64_t i = 0; i < n; ++i) {
      uint16_t bits;
      memcpy(&bits, at + i * step, sizeof bits);
      out[i] = half ? fa_f16_to_f32(bits) : fa_bf16_to_f32(bits);
    }
  } else if (t->dtype == FA_F32) {
    for (int64_t i = 0; i < n; ++i) {
      float x;
      memcpy(&x, at + i * step, sizeof x);
      out[i] = x;
    }
  } else {
    for (int64_t i = 0; i < n; ++i) out[i] = fa_load(t->dtype, at + i * step);
  }
}

static const char *at_offset(const fa_tensor *t, int64_t elements) {
  return t->data + elements * (int64_t)fa_dtype_size(t->dtype);
}

const char *fa_ref_q_row(const fa_ref_call *c, const fa_tensor *t, const fa_ref_sequence *e, int64_t h,
                         int64_t i) {
  (void)c;
  if (t->rank == 3) return at_offset(t, (e->q_first + i) * t->stride[0] + h * t->stride[1]);
  return at_offset(t, e->b * t->stride[0] + i * t->stride[1] + h * t->stride[2]);
}

void fa_ref_load_q(const fa_ref_call *c, fa_tensor_id id, const fa_ref_sequence *e, int64_t h,
                   const int64_t *row, int64_t n, double *out) {
  int64_t width = id == FA_T_Q ? c->d : c->dv;
  if (id == FA_T_Q && c->rotated.q) {
    for (int64_t k = 0; k < n; ++k)
      memcpy(out + k * width, c->rotated.q + fa_ref_q_index(c, e, h, row[k], width),
             (size_t)width * sizeof *out);
    return;
  }
  const fa_tensor *t = &c->in->t[id];
  for (int64_t k = 0; k < n; ++k) {
    fa_ref_load_row(t, fa_ref_q_row(c, t, e, h, row[k]), t->stride[t->rank - 1], width, out + k * width);
    if (id == FA_T_Q) fa_ref_descale_query(c, e, h, row[k], width, out + k * width);
  }
}

void fa_ref_load_k(const fa_ref_call *c, fa_tensor_id id, const fa_ref_sequence *e, int64_t hk, int64_t j0,
                   int64_t n, double *out) {
  const fa_problem *p = c->p;
  const fa_tensor *t = &c->in->t[id];
  if (c->twist && c->twist->source) c->twist->source(c->twist, c, id, &e, &hk);
  int64_t width = id == FA_T_K ? c->d : c->dv;
  int64_t n_stored = p->kvcache.present ? p->kvcache.len.v[e->b] : INT64_MAX;
  for (int64_t k = 0; k < n; ++k) {
    int64_t jj = e->k_first + j0 + k;
    double *to = out + k * width;
    if (!fa_ref_topk_is_listed(c, e, j0 + k)) {
      memset(to, 0, (size_t)width * sizeof *to); /* holds anything, and has no weight */
      continue;
    }
    if (jj >= n_stored) {
      int64_t fresh = (e->b * p->kvcache.n_new + jj - n_stored) * c->heads_kv + hk;
      if (id == FA_T_K && c->rotated.k) {
        memcpy(to, c->rotated.k + fresh * width, (size_t)width * sizeof *to);
      } else {
        const fa_tensor *s = &c->in->t[id == FA_T_K ? FA_T_K_NEW : FA_T_V_NEW];
        int64_t at = e->b * s->stride[0] + (jj - n_stored) * s->stride[1] + hk * s->stride[2];
        fa_ref_load_row(s, at_offset(s, at), s->stride[3], width, to);
        fa_ref_quantise_key(c, id, e, hk, jj, width, to);
      }
    } else if (fa_tensor_is_mixed(p, id)) {
      fa_mixed_load(p, at_offset(t, fa_ref_cache_offset(c, t, e, hk, jj)), width, to);
    } else if (fa_tensor_is_nibbles(p, id)) {
      const fa_tensor *scales = &c->in->t[fa_tensor_scales_of(id)];
      fa_nibbles_load(at_offset(t, fa_ref_cache_offset(c, t, e, hk, jj)),
                      at_offset(scales, fa_ref_cache_offset(c, scales, e, hk, jj)), width, to);
    } else if (p->kvcache.present) {
      fa_ref_load_row(t, at_offset(t, fa_ref_cache_offset(c, t, e, hk, jj)), t->stride[3], width, to);
    } else if (t->rank == 3) {
      fa_ref_load_row(t, at_offset(t, jj * t->stride[0] + hk * t->stride[1]), t->stride[2], width, to);
    } else {
      int64_t at = e->row * t->stride[0] + jj * t->stride[1] + hk * t->stride[2];
      fa_ref_load_row(t, at_offset(t, at), t->stride[3], width, to);
    }
    fa_ref_descale_key(c, id, e, hk, jj, width, to);
  }
}

int64_t fa_ref_lse_index(const fa_ref_call *c, const fa_ref_sequence *e, int64_t h, int64_t i) {
  if (c->p->cu_seqlens_q.n > 0 && !c->p->lse_padded) return h * fa_problem_total_q(c->p) + e->q_first + i;
  return (e->b * c->heads_q + h) * c->p->seqlen_q + i;
}

double fa_ref_lse_get(const fa_ref_call *c, const fa_tensor *t, const fa_ref_sequence *e, int64_t h,
                      int64_t i) {
  (void)c;
  int64_t at = t->rank == 2 ? h * t->stride[0] + (e->q_first + i) * t->stride[1]
                            : e->b * t->stride[0] + h * t->stride[1] + i * t->stride[2];
  return fa_load(t->dtype, at_offset(t, at));
}

int64_t fa_ref_q_index(const fa_ref_call *c, const fa_ref_sequence *e, int64_t h, int64_t i, int64_t width) {
  int64_t row = c->p->cu_seqlens_q.n > 0 ? e->q_first + i : e->b * c->p->seqlen_q + i;
  return (row * c->heads_q + h) * width;
}

int64_t fa_ref_k_index(const fa_ref_call *c, const fa_ref_sequence *e, int64_t hk, int64_t j, int64_t width) {
  int64_t row = e->k_first + j + (c->p->cu_seqlens_k.n > 0 ? 0 : e->b * c->p->seqlen_k);
  return (row * c->heads_kv + hk) * width;
}
