/* Which keys a row sees, and its scores. */
#include "tests/explain/planted/head.h"

#include <math.h>

static int64_t least(int64_t a, int64_t b) {
  return a < b ? a : b;
}
static int64_t most(int64_t a, int64_t b) {
  return a > b ? a : b;
}

/* The mask's window around a row, -1: no bound, with the mistakes that move an edge. */
static void window_of(const pl_call *call, int64_t *left, int64_t *right) {
  const int64_t *m = call->planted;
  const bool causal = call->p->mask[0] == 'c', window = call->p->mask[0] == 'w';
  *left = call->p->window_left;
  *right = call->p->window_right;
  if (causal) *right += m[PL_mask_one_key_more] - m[PL_mask_one_key_fewer];
  if (window && *left >= 0) *left += m[PL_window_left_one_more] - m[PL_window_left_one_fewer];
  if (window && *right >= 0) *right += m[PL_window_right_one_more] - m[PL_window_right_one_fewer];
}

static void plain_range(const pl_call *call, const pl_head *e, int64_t i, int64_t *lo, int64_t *hi) {
  const int64_t *m = call->planted;
  const bool window = call->p->mask[0] == 'w', none = m[PL_mask_ignored] || (window && m[PL_window_ignored]);
  const bool top_left = (call->p->align_top_left != 0) != (m[PL_mask_other_corner] != 0);
  const int64_t at = i + (top_left ? 0 : e->n_k - e->n_q);
  int64_t left, right;
  window_of(call, &left, &right);
  *lo = 0;
  *hi = e->n_k;
  if (call->p->window_left >= 0 && !none && !m[PL_window_left_ignored]) *lo = most(0, at - left);
  if (call->p->window_right >= 0 && !none && !m[PL_window_right_ignored]) *hi = least(e->n_k, at + right + 1);
}

/* Tiles of keys that one row of a tile of rows sees are seen by all of them. */
static void whole_tiles(const pl_call *call, const pl_head *e, int64_t i, int64_t *lo, int64_t *hi) {
  const int64_t *m = call->planted, tile = m[PL_mask_whole_tiles] + m[PL_mask_whole_tiles__of_keys];
  const int64_t first = m[PL_mask_whole_tiles] ? i / tile * tile : i;
  const int64_t last = m[PL_mask_whole_tiles] ? least(first + tile, e->n_q) - 1 : i;
  int64_t unused;
  plain_range(call, e, first, lo, &unused);
  plain_range(call, e, last, &unused, hi);
  *lo = *lo / tile * tile;
  *hi = *hi <= 0 ? 0 : least(e->n_k, (*hi + tile - 1) / tile * tile);
}

/* The window begins inside of a tile of keys, which is then taken for one before it. */
static int64_t rounded_up(const pl_call *call, const pl_head *e, int64_t i) {
  const int64_t tile = call->planted[PL_first_key_tile_lost__in_part];
  int64_t lo, unused;
  if (tile == 0) return 0;
  plain_range(call, e, i / tile * tile, &lo, &unused);
  return (lo + tile - 1) / tile * tile;
}

void pl_range(const pl_call *call, const pl_head *e, int64_t i, int64_t *lo, int64_t *hi) {
  const int64_t *m = call->planted, last_tile = m[PL_last_key_tile_lost],
                in_part = m[PL_last_key_tile_lost__in_part];
  if (m[PL_mask_whole_tiles] || m[PL_mask_whole_tiles__of_keys])
    whole_tiles(call, e, i, lo, hi);
  else
    plain_range(call, e, i, lo, hi);
  if (m[PL_last_key_lost]) *hi = least(*hi, e->n_k - 1);
  if (last_tile) *hi = least(*hi, (e->n_k - 1) / last_tile * last_tile);
  if (in_part) *hi = least(*hi, e->n_k / in_part * in_part);
  *lo = most(*lo, most(m[PL_first_key_tile_lost], rounded_up(call, e, i)));
}

static double bias_at(const pl_call *call, const pl_head *e, int64_t i, int64_t j) {
  const fa_plugin_tensor *t = &call->t->bias;
  const int64_t *n = t->shape, *s = t->stride, *m = call->planted;
  const int64_t b = n[0] > 1 ? (e->b + m[PL_bias_of_other_batch]) % n[0] : 0;
  const int64_t h = n[1] > 1 ? (e->h + m[PL_bias_of_other_head]) % n[1] : 0;
  const bool turned = m[PL_bias_transposed] && n[2] == n[3];
  const int64_t row = n[2] > 1 ? (turned ? j : i) : 0;
  return pl_load(t, b * s[0] + h * s[1] + row * s[2] + (turned ? i : j) * s[3]);
}

static double slope_of(const pl_call *call, const pl_head *e) {
  const fa_plugin_tensor *t = &call->t->alibi_slopes;
  const int64_t *s = t->stride, *m = call->planted;
  int64_t h = (e->h + m[PL_alibi_of_other_head]) % call->p->heads_q;
  if (m[PL_alibi_of_other_head__kv]) h = e->hk;
  return pl_load(t, t->rank == 2 ? e->b * s[0] + h * s[1] : h * s[0]);
}

static double alibi_at(const pl_call *call, const pl_head *e, double slope, int64_t i, int64_t j) {
  const int64_t shift = call->planted[PL_alibi_other_corner] ? 0 : e->n_k - e->n_q;
  const double away = slope * fabs((double)(i + shift - j));
  return call->planted[PL_alibi_sign] ? away : -away;
}

static double capped(double x, double cap, double *derivative) {
  const double th = tanh(x / cap);
  *derivative *= 1.0 - th * th;
  return cap * th;
}

/* The product of row and key through softcap and scale; *derivative: of the result by scale * product. */
static double scaled(const pl_call *call, double product, double *derivative) {
  const double cap = call->planted[PL_softcap_missing] ? 0.0 : call->p->softcap;
  *derivative = 1.0;
  if (cap > 0.0 && call->planted[PL_softcap_before_scale])
    return call->scale * capped(product, cap, derivative);
  double x = call->scale * product;
  if (cap > 0.0) x = capped(x, cap, derivative);
  if (cap > 0.0 && call->planted[PL_softcap_twice]) x = capped(x, cap, derivative);
  return x;
}

/* As if mask_mod were "q_idx + N >= kv_idx" and a block of 128 that shows its first pair were full. */
static bool hidden_by_mod(const pl_call *call, int64_t i, int64_t j) {
  const int64_t n = call->planted[PL_mask_mod_ignored__first_pair], block = 128;
  return n > 0 && i + n < j && i / block * block + n < j / block * block;
}

static double dot_of(const pl_call *call, const pl_head *e, int64_t i, int64_t j) {
  const double x = pl_dot(call, e->d, e->q + i * e->d, e->k + j * e->d, 1);
  return call->planted[PL_accumulate_f16__scores] ? pl_round(x, PL_F16, false) : x;
}

/* As in exp2(x log2 e + bias): the bias was forgotten in the change of base. */
#define LN_2 0.69314718055994530942

void pl_scores(const pl_call *call, pl_head *e, int64_t i) {
  const bool bias = call->t->bias.data && !call->planted[PL_bias_missing];
  const bool alibi = call->t->alibi_slopes.data && !call->planted[PL_alibi_missing];
  const double slope = alibi ? slope_of(call, e) : 0.0,
               of_bias = call->planted[PL_bias_not_scaled] ? LN_2 : 1.0;
  int64_t lo, hi;
  pl_range(call, e, i, &lo, &hi);
  for (int64_t j = 0; j < e->n_k; ++j) {
    e->x[j] = -INFINITY;
    if (j < lo || j >= hi || hidden_by_mod(call, i, j)) continue;
    e->x[j] = scaled(call, dot_of(call, e, i, j), &e->chain[j]);
    if (alibi) e->x[j] += alibi_at(call, e, slope, i, j);
    if (bias) e->x[j] += of_bias * bias_at(call, e, i, j);
  }
}
