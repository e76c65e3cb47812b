/* Operands: tensors of any element type and strides as float64, and their magnitudes in units of powers of two. */
#ifndef FA_REF_CUDA_LOAD_CUH
#define FA_REF_CUDA_LOAD_CUH

#include "ref/cuda/find.cuh"

/* The products are exact, and make subnormals normal. */
FA_DEVICE float float_of_f16(uint32_t bits) {
  const uint32_t magnitude = bits & 0x7fff, sign = (bits & 0x8000) << 16;
  const uint32_t special = magnitude >= 0x7c00 ? 0x7f800000u : 0;
  const float f = float_of_bits(magnitude << 13) * 0x1p112f;
  return float_of_bits(bits_of_float(f) | sign | special);
}
FA_DEVICE float float_of_e4m3(uint32_t bits) {
  const uint32_t magnitude = bits & 0x7f, sign = (bits & 0x80) << 24;
  const uint32_t special = magnitude == 0x7f ? 0x7fc00000u : 0;
  const float f = float_of_bits(magnitude << 20) * 0x1p120f;
  return float_of_bits(bits_of_float(f) | sign | special);
}

FA_DEVICE float load_byte(const fa_judge_tensor *t, int64_t at) {
  const uint32_t bits = ((const uint8_t *)t->data)[at];
  if (t->dtype == FA_E4M3) return float_of_e4m3(bits);
  if (t->dtype == FA_E5M2) return float_of_f16(bits << 8);
  return (float)(int8_t)bits;
}

/* Exact. */
FA_DEVICE double load_element(const fa_judge_tensor *t, int64_t at) {
  if (t->dtype == FA_F32) return ((const float *)t->data)[at];
  if (t->dtype >= FA_E4M3) return load_byte(t, at);
  const uint16_t bits = ((const uint16_t *)t->data)[at];
  return t->dtype == FA_BF16 ? float_of_bits((uint32_t)bits << 16) : float_of_f16(bits);
}

/* ---- row kernels: `at` is a piece of a tensor, a key of the turn, a row of the wave ---- */

/* 16 bytes of what begins as zeros. */
FA_DEVICE void fa_judge_clear(const fa_judge_job *x, int64_t at) {
  x->whole_to[2 * at] = x->whole_to[2 * at + 1] = 0;
}

/* The largest magnitude of a whole tensor, by pieces of FA_PIECE elements. */
FA_DEVICE void fa_judge_measure(const fa_judge_job *x, int64_t at) {
  const fa_judge_tensor *t = &x->whole;
  const int64_t end = (at + 1) * FA_PIECE < t->n ? (at + 1) * FA_PIECE : t->n;
  double most = 0;
  for (int64_t i = at * FA_PIECE + lane(); i < end; i += WARP) {
    const double size = fabs(load_element(t, i));
    most = size > most ? size : most;
  }
  most = warp_max(most);
  if (lane() == 0) raise_to(x->whole_to, most);
}

/* What a row's columns are multiplied by, `tile` of them by the same. NULL: they are the values. */
typedef struct fa_judge_descale {
  const float *of_row;
  int64_t tile;
} fa_judge_descale;

FA_DEVICE fa_judge_descale descale_of(const fa_judge_job *x, const fa_judge_tensor *t, int64_t row,
                                      int64_t width) {
  fa_judge_descale out;
  out.tile = x->c->p->quantized.per == FA_PER_TILE ? FA_MIXED_TILE : width;
  out.of_row = t->data ? (const float *)t->data + row * ((width + out.tile - 1) / out.tile) : NULL;
  return out;
}

/* Exact: 4 or 8 bits times 24. Returns the row's largest magnitude. */
FA_DEVICE double load_row(const fa_judge_tensor *t, int64_t row, int64_t width, fa_judge_descale by,
                          double *to) {
  double most = 0;
  for (int64_t i = lane(); i < width; i += WARP) {
    to[i] = load_element(t, row * width + i);
    if (by.of_row) to[i] *= by.of_row[i / by.tile];
    const double size = fabs(to[i]);
    most = size > most ? size : most;
  }
  return warp_max(most);
}

/* Stored numbers as narrow sums are walked over. */
FA_DEVICE void load_stored(const fa_judge_tensor *t, int64_t row, int64_t width, fa_dtype dtype, float *to,
                           int *exponent) {
  for (int64_t i = lane(); i < width; i += WARP) {
    to[i] = (float)load_element(t, row * width + i);
    exponent[i] = fa_bound_stored_exponent(dtype, to[i]);
  }
}

FA_DEVICE void fa_judge_load_key(const fa_judge_job *x, int64_t at) {
  const fa_judge_head *head = head_of_key(x, at);
  const int64_t from = head->load + (at - head->key) * x->k_step, d = x->c->d, dv = x->c->dv;
  const double k = load_row(&x->k, from, d, descale_of(x, &x->k_descale, from, d), x->k64 + at * d);
  const double v = load_row(&x->v, from, dv, descale_of(x, &x->v_descale, from, dv), x->v64 + at * dv);
  if (x->stored_k)
    load_stored(&x->k, from, d, x->c->p->quantized.dtype, x->stored_k + at * d, x->exponent_k + at * d);
  if (lane() != 0) return;
  raise_to((double *)&head->largest_k, k);
  raise_to((double *)&head->largest_v, v);
}

/* to = |from| / unit and its square; returns the largest. */
FA_DEVICE float scale_row(const double *from, int64_t width, double unit, float *to, float *to2) {
  float most = 0;
  for (int64_t i = lane(); i < width; i += WARP) {
    const float size = fa_element_magnitude(from[i], 1 / unit);
    to[i] = size;
    to2[i] = fa_element_square(size);
    most = size > most ? size : most;
  }
  return warp_max(most);
}

FA_DEVICE void fa_judge_scale_key(const fa_judge_job *x, int64_t at) {
  const fa_judge_head *head = head_of_key(x, at);
  const int64_t d = x->c->d, dv = x->c->dv;
  const double unit_k = fa_bound_unit_of(head->largest_k), unit_v = fa_bound_unit_of(head->largest_v);
  const float k = scale_row(x->k64 + at * d, d, unit_k, x->k1 + at * d, x->k2 + at * d);
  const float v = scale_row(x->v64 + at * dv, dv, unit_v, x->v1 + at * dv, x->v2 + at * dv);
  const int64_t from = (head->load + (at - head->key) * x->k_step) * d;
  for (int64_t i = lane(); x->turned_k && i < d; i += WARP) {
    x->turned_k[2 * at * d + i] = (float)(load_element(&x->flip_k, from + i) / unit_k);
    x->turned_k[(2 * at + 1) * d + i] = x->k1[at * d + i];
  }
  if (lane() != 0) return;
  x->max_k[at] = (float)(k * unit_k);
  x->max_v[at] = (float)(v * unit_v);
}

/* Once a row: an operand that the kernel's formats may not hold. */
FA_DEVICE void flag_operand(const fa_judge_job *x, fa_product which, double unit) {
  if (fa_bound_unit_overflows(x->c, which, unit)) raise_flag(&x->found->flags, FA_JUDGE_OVERFLOW);
}

FA_DEVICE void fa_judge_load_query(const fa_judge_job *x, int64_t at) {
  const fa_judge_block *b = block_of_row(x, at);
  const int64_t from = load_of(x, b, at), to = at * x->c->d;
  load_row(x->rotated.data ? &x->rotated : &x->q, from, x->c->d, descale_of(x, &x->q_descale, from, x->c->d),
           x->q64 + to);
  if (x->stored_q)
    load_stored(&x->q, from, x->c->d, x->c->p->quantized.dtype, x->stored_q + to, x->exponent_q + to);
  warp_sync();
  const float most = scale_row(x->q64 + to, x->c->d, unit_of_q(x), x->q1 + to, x->q2 + to);
  for (int64_t i = lane(); x->turned_q && i < x->c->d; i += WARP) {
    const float flip = (float)(load_element(&x->flip_q, from * x->c->d + i) / unit_of_q(x));
    x->turned_q[2 * to + i] = x->q1[to + i] + flip;
    x->turned_q[2 * to + x->c->d + i] = flip;
  }
  if (lane() != 0) return;
  const fa_judge_head *head = x->head + b->head;
  const double unit_k = fa_bound_unit_of(head->largest_k), unit_v = fa_bound_unit_of(head->largest_v);
  x->row[at].max_q = most;
  flag_operand(x, FA_PRODUCT_QK, fmax(unit_of_q(x), unit_k));
  flag_operand(x, FA_PRODUCT_PV, unit_v);
}

FA_DEVICE void fa_judge_load_do(const fa_judge_job *x, int64_t at) {
  const fa_judge_block *b = block_of_row(x, at);
  const int64_t to = at * x->c->dv;
  const fa_judge_descale none = {NULL, x->c->dv};
  load_row(&x->d_o, load_of(x, b, at), x->c->dv, none, x->do64 + to);
  warp_sync();
  scale_row(x->do64 + to, x->c->dv, unit_of_do(x), x->do1 + to, x->do2 + to);
  if (lane() != 0) return;
  const fa_judge_head *head = x->head + b->head;
  flag_operand(x, FA_PRODUCT_DP, fmax(unit_of_do(x), fa_bound_unit_of(head->largest_v)));
  flag_operand(x, FA_PRODUCT_DQ, fa_bound_unit_of(head->largest_k));
  flag_operand(x, FA_PRODUCT_DK, unit_of_q(x));
  flag_operand(x, FA_PRODUCT_DV, unit_of_do(x));
}

#endif
