/* Operands of 8 bits: each is multiplied by its descale as it is loaded, rounded once. */
#include "gpu/ref_f32/parts.h"

#include <math.h>
#include <string.h>

static float number_at(const fa_tensor *t, int64_t element) {
  float x;
  memcpy(&x, t->data + element * 4, 4);
  return x;
}

static void multiply(float *x, int64_t n, float by) {
  for (int64_t d = 0; d < n; ++d) x[d] *= by;
}

void fa_f32_descale_q(const fa_problem *p, const fa_tensors *set, const fa_f32_sequence *e, int64_t h,
                      int64_t s, float *x) {
  const fa_tensor *t = &set->t[FA_T_Q_DESCALE];
  const int64_t *step = t->stride;
  if (!t->data) return;
  int64_t at = 0;
  if (p->quantized.per == FA_PER_TOKEN)
    at = t->rank == 2 ? (e->q_first + s) * step[0] + h * step[1] : e->b * step[0] + s * step[1] + h * step[2];
  else if (p->quantized.per != FA_PER_TENSOR)
    at = e->b * step[0] + h / (p->heads_q / p->heads_kv) * step[1];
  multiply(x, p->head_dim, number_at(t, at));
}

/* The row of the cache, or the page, that key s of the sequence is in. */
static int64_t row_of(const fa_problem *p, const fa_tensors *set, const fa_f32_sequence *e, int64_t s) {
  const fa_tensor *table = &set->t[FA_T_BLOCK_TABLE], *index = &set->t[FA_T_CACHE_BATCH_IDX];
  int32_t row;
  if (p->kvcache.page_size > 0)
    memcpy(&row, table->data + (e->b * table->stride[0] + s / p->kvcache.page_size * table->stride[1]) * 4,
           4);
  else if (index->data)
    memcpy(&row, index->data + e->b * index->stride[0] * 4, 4);
  else
    return e->b;
  return row;
}

/* Of key s, or its value; t: the cache. */
static float descale_of_key(const fa_problem *p, const fa_tensors *set, const fa_tensor *t,
                            const fa_f32_sequence *e, int64_t hk, int64_t s) {
  const bool values = t == &set->t[FA_T_V];
  const fa_tensor *of = &set->t[values ? FA_T_V_DESCALE : FA_T_K_DESCALE];
  const int64_t *step = of->stride;
  if (!of->data || (!values && t != &set->t[FA_T_K])) return 1;
  const int64_t slot = p->kvcache.page_size > 0 ? s % p->kvcache.page_size : s;
  int64_t at = 0;
  const fa_descale_per per =
      values && p->quantized.queries && p->quantized.per > FA_PER_HEAD ? FA_PER_HEAD : p->quantized.per;
  if (per == FA_PER_HEAD) at = e->b * step[0] + hk * step[1];
  if (per == FA_PER_PAGE) at = row_of(p, set, e, s) * step[0] + hk * step[1];
  if (per == FA_PER_TOKEN)
    at = of->rank == 2 ? (e->k_first + s) * step[0] + hk * step[1]
                       : row_of(p, set, e, s) * step[0] + slot * step[1] + hk * step[2];
  return number_at(of, at);
}

void fa_f32_descale_k(const fa_problem *p, const fa_tensors *set, const fa_tensor *t,
                      const fa_f32_sequence *e, int64_t hk, int64_t s, float *x) {
  const int in_one = p->quantized.dtype == FA_E2M1 ? 2 : 1; /* numbers in an element */
  multiply(x, in_one * t->shape[t->rank - 1], descale_of_key(p, set, t, e, hk, s));
}

void fa_f32_load_mixed(const fa_problem *p, const char *row, int64_t n, float *x) {
  const int64_t lora = p->head_dim_v, eight = n < lora ? n : lora;
  fa_f32_load(FA_E4M3, row, 1, eight, x);
  for (int64_t d = 0; d < eight; ++d) {
    float by;
    memcpy(&by, row + lora + d / FA_MIXED_TILE * 4, 4);
    x[d] *= by;
  }
  if (n > eight) fa_f32_load(p->dtype, row + lora + lora / FA_MIXED_TILE * 4, 1, n - eight, x + eight);
}

void fa_f32_load_nibbles(const char *row, const char *scales, int64_t n, float *x) {
  for (int64_t d = 0; d < n; ++d) {
    const unsigned byte = (unsigned char)row[d >> 1], bits = d & 1 ? byte >> 4 : byte & 15;
    float scale;
    fa_f32_load(FA_E4M3, scales + (d >> 4), 1, 1, &scale);
    const unsigned exponent = bits >> 1 & 3, fraction = bits & 1;
    const float size =
        exponent ? (float)(2 + fraction) * 0.5f * (float)(1 << (exponent - 1)) : 0.5f * (float)fraction;
    x[d] = (bits & 8 ? -size : size) * scale;
  }
}

/* int8 is stored cut off: numbers beyond it as its ends. */
void fa_f32_quantise_k(const fa_problem *p, const fa_tensors *set, const fa_tensor *t,
                       const fa_f32_sequence *e, int64_t hk, int64_t s, float *x) {
  if (!p->quantized.quantizes_new) return;
  const float by = descale_of_key(p, set, t, e, hk, s);
  for (int64_t d = 0; d < t->shape[t->rank - 1]; ++d) x[d] = t->dtype == FA_I8 ? rintf(x[d] / by) : x[d] / by;
}

fa_dtype fa_f32_p_dtype(const fa_problem *p) {
  return p->quantized.queries ? FA_F32 : p->dtype;
}
