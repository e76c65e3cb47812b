#include "ref/attention/coarse.h"

#include <string.h>

const fa_ref_coarse *fa_ref_coarse_of(const fa_ref_call *c) {
  return c->twist && c->twist->coarse.to.bits > 0 ? &c->twist->coarse : NULL;
}

int64_t fa_ref_coarse_keys(const fa_ref_call *c) {
  const fa_ref_coarse *x = fa_ref_coarse_of(c);
  return x && x->tile > 0 ? x->tile : FA_BLOCK_N;
}

void fa_ref_coarse_align(const fa_ref_call *c, fa_ref_rows *r) {
  const fa_ref_coarse *x = fa_ref_coarse_of(c);
  if (x && x->tile > 0) r->j_begin = r->j_begin / x->tile * x->tile;
}

/* part = A B over products first .. first + k - 1. */
static void multiply(const fa_ref_product *p, int first, int k, double *part) {
  const double *a = p->a + (p->ta == FA_BLAS_N ? first : (int64_t)first * p->lda);
  const double *b = p->b + (p->tb == FA_BLAS_T ? first : (int64_t)first * p->ldb);
  fa_blas_dgemm(p->ta, p->tb, p->m, p->n, k, 1, a, p->lda, b, p->ldb, 0, part, p->n);
}

/* C += alpha part, and the sum is rounded where `to` says to what. */
static void add(const fa_ref_product *p, const double *part, const fa_ref_rounding *to) {
  const double unit = p->alpha != 0 ? p->alpha : 1;
  for (int64_t i = 0; i < p->m; ++i)
    for (int64_t j = 0; j < p->n; ++j) {
      double *sum = p->c + i * p->ldc + j;
      const double more = part[i * p->n + j];
      *sum = to ? unit * fa_ref_round(to, *sum / unit + more) : *sum + unit * more;
    }
}

/* The next k products, at most `most` at once. */
static int some(int left, int most) {
  return most > 0 && most < left ? most : left;
}

/* One tile's part of the sums, added in steps. */
static void add_part(const fa_ref_coarse *x, const fa_ref_product *p, int first, int k, double *part) {
  double *step = part + (int64_t)p->m * p->n;
  const fa_ref_product own = {.m = p->m, .n = p->n, .alpha = 1, .c = part, .ldc = p->n};
  memset(part, 0, (size_t)p->m * (size_t)p->n * sizeof *part);
  for (int done = 0, n; done < k; done += n) {
    n = some(k - done, x->within);
    multiply(p, first + done, n, step);
    add(&own, step, &x->to);
  }
  add(p, part, x->sum ? &x->to : NULL);
}

void fa_ref_coarse_add(const fa_ref_coarse *x, const fa_ref_product *p, double *part) {
  for (int first = 0, n; first < p->k; first += n) {
    n = some(p->k - first, x->tile);
    if (x->part) {
      add_part(x, p, first, n, part);
      continue;
    }
    for (int done = 0, more; done < n; done += more) {
      more = some(n - done, x->within);
      multiply(p, first + done, more, part);
      add(p, part, &x->to);
    }
  }
}

void fa_ref_coarse_scores(const fa_ref_coarse *x, const fa_ref_product *p, double *part) {
  for (int64_t i = 0; i < p->m; ++i) memset(p->c + i * p->ldc, 0, (size_t)p->n * sizeof *p->c);
  for (int done = 0, n; done < p->k; done += n) {
    n = some(p->k - done, x->within);
    multiply(p, done, n, part);
    add(p, part, &x->to);
  }
}
