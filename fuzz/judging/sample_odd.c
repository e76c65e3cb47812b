/* Places that are judged besides those that were drawn, because their outputs hold NaN or infinity: what nobody wrote is
 * NaN, too. */
#include "fuzz/judging/places.h"

#include "cases/tensors/table.h"
#include "cases/threads/parallel.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { OF_HEAD = 8, MOST_ROWS = 256, MOST_STRIPS = 16 };

/* A head of an output: its first odd rows or keys. */
typedef struct found {
  int n;
  int64_t i[OF_HEAD];
} found;

typedef struct search {
  const fa_ref_call *c;
  const fa_tensors *got;
  const fa_tensor_id *id;
  found *of; /* [n_ids][batch][heads_q] */
} search;

/* A 16-bit float is not finite if its exponent is all ones. */
static bool finite_16(const uint16_t *x, int64_t n, uint16_t exponent) {
  bool odd = false;
  for (int64_t i = 0; i < n; ++i) odd |= (x[i] & exponent) == exponent;
  return !odd;
}

static bool is_finite(const fa_tensor *t, const char *at, int64_t stride, int64_t n) {
  const bool narrow = t->dtype == FA_F16 || t->dtype == FA_BF16;
  if (narrow && stride == 1 && (uintptr_t)at % 2 == 0)
    return finite_16((const uint16_t *)(const void *)at, n, t->dtype == FA_F16 ? 0x7c00 : 0x7f80);
  for (int64_t i = 0; i < n; ++i)
    if (!isfinite(fa_load(t->dtype, at + i * stride * (int64_t)fa_dtype_size(t->dtype)))) return false;
  return true;
}

/* By length and mask; block lists and expressions may hide what is left. */
static bool sees_a_key(const fa_ref_call *c, const fa_ref_sequence *e, int64_t i) {
  const fa_window window = fa_mask_window(&c->p->mask);
  const int64_t diagonal = i + e->shift, first = window.left < 0 ? 0 : diagonal - window.left;
  const int64_t end =
      window.right < 0 || diagonal + window.right + 1 > e->sk ? e->sk : diagonal + window.right + 1;
  return (first > 0 ? first : 0) < end;
}

/* Infinity is what a row without a visible key may have. */
static bool row_is_odd(const search *x, const fa_tensor *t, const fa_ref_sequence *e, int64_t h, int64_t i) {
  const bool lse = t == &x->got->t[FA_T_LSE];
  if (lse) {
    const double value = fa_ref_lse_get(x->c, t, e, h, i);
    if (isfinite(value)) return false;
    return isnan(value) || sees_a_key(x->c, e, i);
  }
  const int last = t->rank - 1;
  return !is_finite(t, fa_ref_q_row(x->c, t, e, h, i), t->stride[last], t->shape[last]);
}

static bool key_is_odd(const fa_tensor *t, const fa_ref_sequence *e, int64_t hk, int64_t j) {
  const int last = t->rank - 1;
  const int64_t key = e->k_first + j;
  const int64_t at = t->rank == 3 ? key * t->stride[0] + hk * t->stride[1]
                                  : e->b * t->stride[0] + key * t->stride[1] + hk * t->stride[2];
  return !is_finite(t, t->data + at * (int64_t)fa_dtype_size(t->dtype), t->stride[last], t->shape[last]);
}

static void search_head(void *context, int thread, int64_t item) {
  const search *x = context;
  const int64_t h = item % x->c->heads_q, b = item / x->c->heads_q % x->c->p->batch;
  const fa_tensor_id id = x->id[item / x->c->heads_q / x->c->p->batch];
  const fa_tensor *t = &x->got->t[id];
  const fa_ref_sequence *e = &x->c->entry[b];
  const bool keys = fa_tensor_describe(id)->on_keys;
  found *to = &x->of[item];
  (void)thread;
  if (!t->data || (keys && h >= x->c->heads_kv)) return;
  for (int64_t i = 0; i < (keys ? e->sk : e->sq) && to->n < OF_HEAD; ++i)
    if (keys ? key_is_odd(t, e, h, i) : row_is_odd(x, t, e, h, i)) to->i[to->n++] = i;
}

/* Adds what was found to the list, as far as it is new, up to `most`. */
static bool add(const search *x, int n_ids, bool keys, int64_t most, places *to, int64_t *odd) {
  const int64_t drawn = to->n, heads = x->c->p->batch * x->c->heads_q;
  bool ok = true;
  for (int64_t item = 0; ok && item < n_ids * heads; ++item) {
    if (fa_tensor_describe(x->id[item / heads])->on_keys != keys) continue;
    for (int k = 0; ok && k < x->of[item].n && to->n - drawn < most; ++k) {
      const int64_t i = x->of[item].i[k], first = keys ? i / FA_STRIP_KEYS * FA_STRIP_KEYS : i;
      ok = places_add(to, (fa_ref_place){item / x->c->heads_q % x->c->p->batch, item % x->c->heads_q, first});
    }
  }
  places_settle(to);
  *odd = to->n - drawn;
  return ok;
}

static bool look(search *x, int n_ids, int n_threads, fa_sample_places *out) {
  places rows = {out->row, out->n_rows, out->n_rows}, strips = {out->strip, out->n_strips, out->n_strips};
  fa_parallel(n_threads, n_ids * x->c->p->batch * x->c->heads_q, search_head, x);
  bool ok = add(x, n_ids, false, MOST_ROWS, &rows, &out->odd_rows);
  if (n_ids > 2) ok &= add(x, n_ids, true, MOST_STRIPS, &strips, &out->odd_strips);
  out->row = rows.at, out->n_rows = rows.n;
  out->strip = strips.at, out->n_strips = strips.n;
  return ok;
}

fa_status fa_sample_add_odd(const fa_problem *p, const fa_tensors *in, const fa_tensors *got, int n_threads,
                            bool strips, fa_sample_places *x, fa_error *err) {
  static const fa_tensor_id ids[] = {FA_T_O, FA_T_LSE, FA_T_DQ, FA_T_DK, FA_T_DV};
  const int n_ids = strips ? 5 : 2;
  const fa_ref_options options = {.n_threads = n_threads};
  fa_ref_call c;
  fa_wants none;
  const fa_status status = fa_ref_call_init(&c, p, in, &options, &none, err);
  if (status != FA_OK) return status;
  search s = {.c = &c, .got = got, .id = ids};
  s.of = calloc((size_t)(n_ids * p->batch * p->heads_q) + 1, sizeof *s.of);
  const bool ok = s.of && look(&s, n_ids, c.n_threads, x);
  free(s.of);
  fa_ref_call_free(&c);
  return ok ? FA_OK : places_no_memory(err);
}
