/* Addresses of the rows of one sequence, from the strides in fa_tensor alone. */
#include "gpu/ref_f32/parts.h"

#include <string.h>

static int32_t int_at(const fa_tensor *t, int64_t i) {
  int32_t x;
  memcpy(&x, t->data + i * t->stride[0] * 4, 4);
  return x;
}

static int64_t min64(int64_t a, int64_t b) {
  return a < b ? a : b;
}

fa_f32_sequence fa_f32_sequence_make(const fa_problem *p, const fa_tensors *t, int64_t b) {
  fa_f32_sequence e = {.b = b, .n_q = p->seqlen_q, .k_extent = p->seqlen_k};
  if (t->t[FA_T_CU_SEQLENS_Q].data) {
    e.q_first = int_at(&t->t[FA_T_CU_SEQLENS_Q], b);
    e.n_q = int_at(&t->t[FA_T_CU_SEQLENS_Q], b + 1) - e.q_first;
  }
  if (t->t[FA_T_CU_SEQLENS_K].data) {
    e.k_first = int_at(&t->t[FA_T_CU_SEQLENS_K], b);
    e.k_extent = int_at(&t->t[FA_T_CU_SEQLENS_K], b + 1) - e.k_first;
  }
  e.n_k = e.k_extent;
  if (p->kvcache.present) e.n_k = int_at(&t->t[FA_T_CACHE_SEQLENS], b) + p->kvcache.n_new;
  if (t->t[FA_T_SEQUSED_K].data) e.n_k = min64(e.n_k, int_at(&t->t[FA_T_SEQUSED_K], b));
  if (t->t[FA_T_LEFTPAD_K].data) e.leftpad = min64(e.n_k, int_at(&t->t[FA_T_LEFTPAD_K], b));
  e.n_k -= e.leftpad;
  return e;
}

/* Element [b, s, h, 0] of a dense tensor, or [first + s, h, 0] of a packed one. */
static char *row_at(const fa_tensor *t, int64_t b, int64_t first, int64_t s, int64_t h) {
  int64_t at = t->rank == 3 ? (first + s) * t->stride[0] + h * t->stride[1]
                            : b * t->stride[0] + s * t->stride[1] + h * t->stride[2];
  return t->data + at * (int64_t)fa_dtype_size(t->dtype);
}

char *fa_f32_q_row(const fa_problem *p, const fa_tensor *t, const fa_f32_sequence *e, int64_t h, int64_t i) {
  (void)p;
  return row_at(t, e->b, e->q_first, i, h);
}

char *fa_f32_k_row(const fa_problem *p, const fa_tensors *set, const fa_tensor *t, const fa_f32_sequence *e,
                   int64_t hk, int64_t s) {
  const fa_kvcache *c = &p->kvcache;
  if (!c->present) return row_at(t, e->b, e->k_first, s, hk);
  if (c->page_size > 0) {
    const fa_tensor *table = &set->t[FA_T_BLOCK_TABLE];
    int32_t page;
    memcpy(&page, table->data + (e->b * table->stride[0] + s / c->page_size * table->stride[1]) * 4, 4);
    return row_at(t, page, 0, s % c->page_size, hk);
  }
  const fa_tensor *index = &set->t[FA_T_CACHE_BATCH_IDX];
  return row_at(t, index->data ? int_at(index, e->b) : e->b, 0, s, hk);
}

float *fa_f32_lse_at(const fa_problem *p, const fa_tensor *t, const fa_f32_sequence *e, int64_t h,
                     int64_t i) {
  (void)p;
  int64_t at = t->rank == 2 ? h * t->stride[0] + (e->q_first + i) * t->stride[1]
                            : e->b * t->stride[0] + h * t->stride[1] + i * t->stride[2];
  return (float *)(void *)(t->data + at * 4);
}

static void zero_rows(float *dst, int64_t ld, int64_t from, int64_t to) {
  if (to > from) memset(dst + from * ld, 0, (size_t)((to - from) * ld) * sizeof *dst);
}

void fa_f32_load_q(const fa_problem *p, const fa_tensors *set, const fa_tensor *t, const fa_f32_sequence *e,
                   int64_t h, int64_t first, int64_t n, int64_t n_padded, float *dst, int64_t ld) {
  int64_t width = t->shape[t->rank - 1], stride = t->stride[t->rank - 1];
  zero_rows(dst, ld, 0, n_padded);
  for (int64_t r = 0; r < n; ++r) {
    fa_f32_load(t->dtype, fa_f32_q_row(p, t, e, h, first + r), stride, width, dst + r * ld);
    if (t == &set->t[FA_T_Q]) fa_f32_descale_q(p, set, e, h, first + r, dst + r * ld);
  }
}

void fa_f32_load_k(const fa_problem *p, const fa_tensors *set, const fa_tensor *t, const fa_f32_sequence *e,
                   int64_t hk, int64_t first_key, int64_t n, int64_t n_padded, float *dst, int64_t ld) {
  int64_t width = t->shape[t->rank - 1], stride = t->stride[t->rank - 1];
  const bool mixed = p->quantized.present && p->quantized.per == FA_PER_TILE;
  zero_rows(dst, ld, 0, n_padded);
  for (int64_t r = 0; r < n; ++r) {
    const int64_t s = e->leftpad + first_key + r;
    const char *row = fa_f32_k_row(p, set, t, e, hk, s);
    if (mixed)
      fa_f32_load_mixed(p, row, t == &set->t[FA_T_K] ? p->head_dim : p->head_dim_v, dst + r * ld);
    else if (p->quantized.dtype == FA_E2M1)
      fa_f32_load_nibbles(
          row, fa_f32_k_row(p, set, &set->t[t == &set->t[FA_T_K] ? FA_T_K_SCALES : FA_T_V_SCALES], e, hk, s),
          2 * width, dst + r * ld);
    else
      fa_f32_load(t->dtype, row, stride, width, dst + r * ld);
    fa_f32_descale_k(p, set, t, e, hk, s, dst + r * ld);
  }
}
