/* Fills in which q and k belong together: they shape the logit of a pair, not the elements.
 *
 * They use the last dimensions of the head, because a rotary embedding turns the first ones (and, if it
 * covers the whole head, turns the last ones least). The claims do not hold if a rotary embedding turns the
 * dimensions used, or if the scale is 0. */
#include "cases/data/build.h"

#include <math.h>

#define MAX_CODE_BITS 20 /* distinguishes keys 0 .. 2^20 - 1 */

/* A power of two within a factor sqrt 2 of x; x itself if it is one. */
static double nearest_power_of_two(double x) {
  int exponent;
  const double m = frexp(x, &exponent); /* x = m 2^e, 1/2 <= m < 1 */
  return ldexp(1, m > 0.70710678118654752 ? exponent : exponent - 1);
}

static double sign_of(double x) {
  return x < 0 ? -1 : 1;
}

/* ---- negative_logits, sentinel: scale q.k = -target, within a few units ---- */

/* The last dimension carries q0 k0 = -target / scale with |q0| = |k0|. The others are N(0, a^2), with a
 * chosen so that the logits scatter by at most 1: 6 sigma stay close to the target. */
void fa_fill_constant_logits(const fa_case *c, fa_fill_numbers *x) {
  if (x->fill != FA_FILL_NEGATIVE_LOGITS && x->fill != FA_FILL_SENTINEL) return;
  const double target = x->fill == FA_FILL_SENTINEL ? 6e4 : 200;
  const double scale = c->problem.scale, steep = fabs(scale) > 0 ? fabs(scale) : 1;
  const double spread = sqrt(1 / (steep * sqrt((double)x->width)));
  const double limit = 0.9 * fa_dtype_max(c->problem.dtype), m = sqrt(target / steep);
  x->spread = spread < 1 ? spread : 1;
  x->last = m < limit ? m : limit;
  if (x->data != FA_DATA_QUERY) x->last *= -sign_of(scale);
}

/* ---- staircase: scale q.k = step * j ---- */

/* The base-256 digits of j are in the last dimensions of k, each times its weight, exact in bf16. The weights
 * are not in q, because dK sums q over the rows and would leave f16's range; only the third digit (j >=
 * 65536) needs q. The step is |scale| times a power of two: 0.5 exactly if the scale is a power of two,
 * otherwise within a factor sqrt 2 of it. With one dimension, k holds j itself (exact to 256 in bf16, 2048 in
 * f16); with two, the second holds all of j / 256. */
static void staircase_row(const fa_fill_row *r, double direction, double *value, int64_t n) {
  const double scale = r->c->problem.scale;
  double step = fabs(scale) > 0 ? nearest_power_of_two(0.5 / fabs(scale)) : 1;
  step = fmin(fmax(step, 0x1p-14), 0x1p15); /* in f16's range: suffices for |scale| from 2^-16 on */
  const bool third = n >= 3 && r->c->problem.seqlen_k > 65536;
  for (int64_t d = 0; d < n; ++d) value[d] = 0;
  if (r->numbers->data == FA_DATA_QUERY) {
    value[n - 1] = direction * sign_of(scale) * step;
    if (n >= 2) value[n - 2] = value[n - 1];
    if (third) value[n - 3] = 256 * value[n - 1];
    return;
  }
  value[n - 1] = n >= 2 ? (double)(r->s & 255) : (double)r->s;
  if (n >= 2) value[n - 2] = 256 * (double)(third ? r->s >> 8 & 255 : r->s >> 8);
  if (third) value[n - 3] = 256 * (double)(r->s >> 16 & 255);
}

/* ---- one_hot: scale q.k = 0 for one visible key, <= -128 for every other ---- */

static bool tile_listed(const fa_fill_row *r, fa_tensor_id counts, fa_tensor_id indices, int64_t tile) {
  const fa_tensor *n = &r->set->t[counts], *index = &r->set->t[indices];
  const int64_t at[4] = {n->shape[0] == 1 ? 0 : r->b, n->shape[1] == 1 ? 0 : r->h,
                         r->s / r->c->problem.block_sparse.q_block, 0};
  if (n->data == NULL) return false;
  const int64_t used = (int64_t)fa_tensor_get(n, at);
  for (int64_t i = 0; i < used; ++i) {
    const int64_t entry[4] = {at[0], at[1], at[2], i};
    if ((int64_t)fa_tensor_get(index, entry) == tile) return true;
  }
  return false;
}

/* A bit of a custom mask; true without one. */
static bool bit_is_set(const fa_fill_row *r, int64_t j) {
  const fa_problem *p = &r->c->problem;
  if (!p->mask_bits.present) return true;
  int64_t rows, keys;
  fa_problem_pairs(p, r->b, &rows, &keys);
  const int64_t n = r->s * keys + j;
  const char *bytes = r->set->t[FA_T_MASK_BITS].data + fa_problem_mask_bytes(p, r->b);
  return (unsigned char)bytes[n / 8] >> n % 8 & 1;
}

static bool key_visited(const fa_fill_row *r, int64_t j) {
  const fa_block_sparse *s = &r->c->problem.block_sparse;
  if (!bit_is_set(r, j)) return false;
  if (!s->present || r->set->t[FA_T_KV_NUM_BLOCKS].data == NULL) return true;
  return tile_listed(r, FA_T_KV_NUM_BLOCKS, FA_T_KV_INDICES, j / s->kv_block) ||
         tile_listed(r, FA_T_FULL_KV_NUM_BLOCKS, FA_T_FULL_KV_INDICES, j / s->kv_block);
}

/* The key that query row r attends to: a hash picks one of the keys visible to it; -1 if there is none. */
static int64_t chosen_key(const fa_fill_row *r) {
  const fa_problem *p = &r->c->problem;
  const fa_sequence e = fa_case_sequence(p, r->b);
  const int64_t diagonal = r->s + (p->mask.align == FA_ALIGN_TOP_LEFT ? 0 : e.sk - e.sq);
  const fa_window window = fa_mask_window(&p->mask);
  int64_t lo = 0, hi = e.sk - 1;
  if (window.left >= 0 && diagonal - window.left > lo) lo = diagonal - window.left;
  const int64_t chunk = fa_mask_chunk(&p->mask), begin = chunk > 0 ? fa_mask_chunk_begin(chunk, diagonal) : 0;
  if (begin > lo) lo = begin;
  if (window.right >= 0 && diagonal + window.right < hi) hi = diagonal + window.right;
  if (lo > hi) return -1;
  const int64_t start = (int64_t)(fa_fill_u64(r, 0, 1) % (uint64_t)(hi - lo + 1));
  for (int64_t k = 0; k <= hi - lo; ++k) {
    const int64_t j = lo + (start + k) % (hi - lo + 1);
    if (key_visited(r, j)) return e.leftpad + j;
  }
  return -1;
}

/* The number of bits that distinguish n_keys keys, limited by the dimensions available. */
static int64_t code_bits(int64_t n_keys, int64_t n_dims) {
  int64_t bits = 1;
  while (bits < MAX_CODE_BITS && (int64_t)1 << bits < n_keys) ++bits;
  return bits < n_dims ? bits : n_dims;
}

/* Key j carries its bits as +-1 in `bits` dimensions and -1 in one more; the query carries the bits of its
 * chosen key, and `bits`. So q.k = -2 A (number of differing bits), where A = A_q A_k is a power of two with
 * |scale| 2 A >= 128: exp of that is 0 in f32, and in f64 far below the last bit of a sum with 1. A is no
 * larger than needed, because |Q||K| grows with it, and with that the error that an f32 sum may have. The
 * chosen logit is 0 rather than some large number, because kernels compute exp2(x c - max c) with a fused
 * multiply-add, which is exactly 1 only if x is 0 (or the product is exact). Exactness needs 2^(D-1) >=
 * number of keys. */
static void one_hot_row(const fa_fill_row *r, double *value, int64_t n) {
  const double scale = r->c->problem.scale, steep = fabs(scale) > 0 ? fabs(scale) : 1;
  const int64_t bits = code_bits(r->c->problem.seqlen_k, n - 1);
  int exponent;
  const double m = frexp(64 / steep, &exponent); /* A = 2^exponent >= 64 / steep */
  if (m == 0.5) --exponent;
  /* In f16's range, 20 * 2^11 included: suffices for |scale| from 2^-20 on. */
  int exponent_q = exponent / 2 < 11 ? exponent / 2 : 11, exponent_k = exponent - exponent_q;
  exponent_q = exponent_q > -14 ? exponent_q : -14;
  exponent_k = exponent_k > 15 ? 15 : exponent_k < -14 ? -14 : exponent_k;
  const bool query = r->numbers->data == FA_DATA_QUERY;
  const int64_t key = query ? chosen_key(r) : r->s;
  const double unit = query ? ldexp(sign_of(scale), exponent_q) : ldexp(1, exponent_k);
  for (int64_t d = 0; d < n; ++d) value[d] = 0;
  for (int64_t i = 0; i < bits && key >= 0; ++i) value[n - 2 - i] = key >> i & 1 ? unit : -unit;
  value[n - 1] = key < 0 ? 0 : query ? (double)bits * unit : -unit;
}

bool fa_fill_logits_row(const fa_fill_row *r, double *value, int64_t n) {
  if (r->numbers->data != FA_DATA_QUERY && r->numbers->data != FA_DATA_KEY) return false;
  switch (r->fill) {
  case FA_FILL_STAIRCASE_UP:
    return staircase_row(r, 1, value, n), true;
  case FA_FILL_STAIRCASE_DOWN:
    return staircase_row(r, -1, value, n), true;
  case FA_FILL_ONE_HOT:
    return one_hot_row(r, value, n), true;
  default:
    return false;
  }
}
