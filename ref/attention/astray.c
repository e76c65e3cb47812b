#include "ref/attention/astray.h"

#include <math.h>

static bool is_of(const fa_ref_part *part, const fa_ref_rows *r, int64_t h) {
  return part->b == r->e->b && part->h == h;
}

static bool meets(int64_t a, int64_t a_n, int64_t b, int64_t b_n) {
  return a < b + b_n && b < a + a_n;
}

/* Keeps rows first .. end - 1 of the block. */
static void cut_rows(const fa_ref_call *c, fa_ref_rows *r, int64_t first, int64_t end) {
  if (end > r->i0 + r->n) end = r->i0 + r->n;
  if (first < r->i0) first = r->i0;
  fa_ref_rows_init(c, r->e, r->h, first, r);
  r->n = end - first;
  r->j_begin = r->e->sk;
  r->j_end = 0;
  for (int64_t k = 0; k < r->n; ++k) {
    if (r->lo[k] == r->hi[k]) continue;
    if (r->lo[k] < r->j_begin) r->j_begin = r->lo[k];
    if (r->hi[k] > r->j_end) r->j_end = r->hi[k];
  }
  if (r->j_begin > r->j_end) r->j_begin = r->j_end = 0;
}

bool fa_ref_rows_asked(const fa_ref_call *c, fa_ref_rows *r) {
  const fa_ref_twist *t = c->twist;
  if (!t || t->n_rows == 0) return true;
  for (int n = 0; n < t->n_rows; ++n) {
    const fa_ref_part *part = &t->rows[n];
    if (!is_of(part, r, r->h) || !meets(part->first, part->n, r->i0, r->n)) continue;
    cut_rows(c, r, part->first, part->first + part->n);
    return true;
  }
  return false;
}

static void cut_keys(fa_ref_rows *r, int64_t first, int64_t end) {
  for (int64_t k = 0; k < r->n; ++k) {
    if (r->lo[k] < first) r->lo[k] = first;
    if (r->hi[k] > end) r->hi[k] = end;
    if (r->lo[k] >= r->hi[k]) r->lo[k] = r->hi[k] = 0;
  }
  if (r->j_begin < first) r->j_begin = first;
  if (r->j_end > end) r->j_end = end;
  if (r->j_begin >= r->j_end) r->j_begin = r->j_end = 0;
}

bool fa_ref_keys_asked(const fa_ref_call *c, int64_t hk, fa_ref_rows *r) {
  const fa_ref_twist *t = c->twist;
  if (!t || t->n_keys == 0) return true;
  for (int n = 0; n < t->n_keys; ++n) {
    if (!is_of(&t->keys[n], r, hk)) continue;
    cut_keys(r, t->keys[n].first, t->keys[n].first + t->keys[n].n);
    return true;
  }
  return false;
}

bool fa_ref_gradients_asked(const fa_ref_call *c, const fa_ref_sequence *e, int64_t hk, int64_t *begin,
                            int64_t *end) {
  const fa_ref_twist *t = c->twist;
  *begin = 0;
  *end = e->sk;
  if (!t || t->n_keys + t->n_rows == 0) return true;
  for (int n = 0; n < t->n_keys; ++n) {
    const fa_ref_part *part = &t->keys[n];
    if (part->b != e->b || part->h != hk) continue;
    *begin = part->first;
    *end = part->first + part->n;
    return true;
  }
  return false;
}

double fa_ref_round(const fa_ref_rounding *r, double x) {
  int exponent;
  if (r->bits == 0 || x == 0 || !isfinite(x)) return x;
  frexp(x, &exponent); /* |x| is 1/2 .. 1 times 2^exponent */
  if (exponent - 1 < r->lowest) exponent = r->lowest + 1;
  const double unit = ldexp(1, exponent - r->bits), steps = x / unit;
  const double rounded = (r->cut ? trunc(steps) : nearbyint(steps)) * unit;
  return fmax(fmin(rounded, r->max), -r->max);
}

void fa_ref_astray_round(const fa_ref_rounding *r, double *x, int64_t n) {
  for (int64_t i = 0; r->bits > 0 && i < n; ++i) x[i] = fa_ref_round(r, x[i]);
}

void fa_ref_astray_dscore(const fa_ref_rounding *r, double *p, double *dp, const double *z, double delta,
                          int64_t n) {
  for (int64_t j = 0; j < n; ++j) {
    const double kept = z ? z[j] : 1;
    dp[j] = fa_ref_round(r, p[j]) * (kept * dp[j] - delta);
    p[j] *= kept;
  }
}

/* The keys of the tile next in order: *begin .. *end - 1, offsets from first. False: there is none. */
static bool next_tile(const fa_ref_walk *walk, int64_t first, int64_t n, int64_t *begin, int64_t *end) {
  if (walk->backwards) {
    if (*begin == 0) return false;
    *end = *begin;
    *begin = (first + *end - 1) / walk->tile * walk->tile - first;
    if (*begin < 0) *begin = 0;
    return true;
  }
  if (*end == n) return false;
  *begin = *end;
  *end = ((first + *begin) / walk->tile + 1) * walk->tile - first;
  if (*end > n) *end = n;
  return true;
}

void fa_ref_astray_row(const fa_ref_call *c, const fa_rows *rows, fa_ref_scratch *w, int64_t k, double *x,
                       int64_t first, int64_t n, fa_ref_astray *a) {
  const fa_ref_walk *walk = &c->twist->walk;
  int64_t begin = n, end = 0;
  while (next_tile(walk, first, n, &begin, &end)) {
    const double top = rows->max(x + begin, end - begin);
    if (top > w->m[k]) {
      const double by = exp(w->m[k] - top);
      w->m[k] = top;
      w->l[k] *= by;
      const bool stays = walk->only == 0 || walk->only == (first + begin) / walk->tile;
      if (!stays) a->sum[k] *= by;
      if (!(walk->o_stays && stays)) {
        rows->scale(w->acc + k * c->dv, c->dv, by);
        if (walk->backwards)
          rows->scale(x + end, n - end, by);
        else
          rows->scale(x, begin, by);
      }
    }
    const double sum = rows->exp(x + begin, end - begin, w->m[k]);
    fa_ref_astray_round(&c->twist->p, x + begin, end - begin);
    w->l[k] += sum;
    a->sum[k] += sum;
  }
}

static void scale_row(fa_want *o, int64_t at, int64_t n, double value, double bound) {
  for (int64_t x = at; x < at + n; ++x) {
    o->value[x] *= value;
    if (!o->quant) continue;
    o->quant[x] *= (float)bound;
    o->accum[x] *= (float)bound;
    o->noise[x] *= (float)bound;
  }
}

void fa_ref_astray_end(fa_ref_call *c, const fa_ref_rows *r, const fa_ref_scratch *w,
                       const fa_ref_astray *a) {
  const fa_ref_twist *t = c->twist;
  fa_want *lse = &c->out->t[FA_T_LSE];
  for (int64_t k = 0; k < r->n; ++k) {
    const int64_t o = fa_ref_q_index(c, r->e, r->h, r->row[k], c->dv);
    const int64_t at = fa_ref_lse_index(c, r->e, r->h, r->row[k]);
    if (w->l[k] == 0) continue;
    if (t->walk.o_stays) scale_row(&c->out->t[FA_T_O], o, c->dv, 1, a->sum[k] / w->l[k]);
    if (t->walk.sum_stays) {
      scale_row(&c->out->t[FA_T_O], o, c->dv, w->l[k] / a->sum[k], w->l[k] / a->sum[k]);
      lse->value[at] += log(a->sum[k] / w->l[k]);
    }
    if (t->o_not_divided) scale_row(&c->out->t[FA_T_O], o, c->dv, w->l[k], w->l[k]);
    if (t->lse_astray) lse->value[at] = t->lse_by_max * w->m[k] + t->lse_by_log * log(w->l[k]);
    if (t->walk.sum_stays || t->lse_astray) lse->rest[at] = 0;
  }
}
