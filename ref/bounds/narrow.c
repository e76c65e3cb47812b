#include "ref/bounds/narrow.h"

#include "ref/engine/descale.h"

#include <math.h>
#include <string.h>

/* 32 products and the accumulator are aligned to the largest exponent, that of a product being the sum of its factors'; each
 * is cut to 13 fraction bits of it, and so is the sum. */
enum { BLOCK = 32, FRACTION = 13 };
#define NO_EXPONENT (-2000) /* of 0 */

bool fa_bound_walks_scores(const fa_ref_call *c) {
  return c->profile && c->p->quantized.queries &&
         c->profile->accumulator[FA_PRODUCT_QK] == FA_ACCUMULATOR_NARROW;
}

static int exponent_of(double x) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  return (int)(bits >> 52 & 0x7ff) - 1023;
}

static double power(int exponent) {
  const uint64_t bits = (uint64_t)(exponent + 1023) << 52;
  double x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

/* The product of a stored number and a descale is exact, and so is the quotient. Subnormals have the least exponent. */
static void store(const double *value, int64_t n, double descale, int least, float *stored, int *exponent) {
  for (int64_t d = 0; d < n; ++d) {
    const double x = descale != 0 ? value[d] / descale : 0;
    stored[d] = (float)x;
    const int own = exponent_of(x);
    exponent[d] = x == 0 ? NO_EXPONENT : own > least ? own : least;
  }
}

static int least_exponent(const fa_ref_call *c) {
  return c->p->quantized.dtype == FA_E4M3 ? -6 : -14;
}

void fa_bound_narrow_rows(fa_bound_scratch *b, const fa_ref_call *c, const fa_ref_rows *r,
                          const fa_ref_scratch *w) {
  fa_bound_narrow *x = &b->narrow;
  for (int64_t k = 0; k < r->n && x->q; ++k) {
    x->q_descale[k] = fa_ref_descale_of_query(c, r->e, r->h, r->row[k]);
    store(w->q + k * c->d, c->d, x->q_descale[k], least_exponent(c), x->q + k * c->d,
          x->q_exponent + k * c->d);
  }
}

void fa_bound_narrow_keys(fa_bound_scratch *b, const fa_ref_call *c, const fa_ref_scratch *w) {
  fa_bound_narrow *x = &b->narrow;
  for (int64_t j = 0; j < w->e->sk && x->k; ++j) {
    x->k_descale[j] = fa_ref_descale_of_key(c, FA_T_K, w->e, w->hk, w->e->k_first + j);
    store(w->k + j * c->d, c->d, x->k_descale[j], least_exponent(c), x->k + j * c->d,
          x->k_exponent + j * c->d);
  }
}

/* What products that lie too low lose, each less than a quantum and less than itself. In generic data their signs are
 * independent: four times the root of the mean squares of numbers between 0 and that much. */
static double lost_products(const float *q, const float *k, const int *eq, const int *ek, int n, int least,
                            double quantum, bool generic) {
  double lost = 0, squares = 0;
  for (int d = 0; d < n; ++d) {
    const double x = fabs((double)q[d] * (double)k[d]), cut = eq[d] + ek[d] < least ? fmin(x, quantum) : 0;
    lost += cut;
    squares += cut * cut;
  }
  return generic ? fmin(lost, 4 * sqrt(squares / 3)) : lost;
}

/* What one block adds to the error of a sum that is exactly *sum so far, and may be off by error. A product has 8 significant
 * bits, and loses nothing within 7 of the largest exponent. */
static double block_error(const float *q, const float *k, const int *eq, const int *ek, int n, bool generic,
                          double *sum, double error) {
  int most = NO_EXPONENT;
  double total = 0;
  for (int d = 0; d < n; ++d) {
    const int e = eq[d] + ek[d];
    most = e > most ? e : most;
    total += (double)q[d] * (double)k[d];
  }
  const double before = fabs(*sum);
  *sum += total;
  if (most <= NO_EXPONENT / 2) return error; /* all products are 0 */
  const int above = before + error > 0 ? exponent_of(before + error) : NO_EXPONENT;
  const int below = before - error > 0 ? exponent_of(before - error) : NO_EXPONENT;
  const int largest = above > most ? above : most;
  const double quantum = power(largest - FRACTION);
  if (before + error > 0 && below < largest) error += quantum;
  error += lost_products(q, k, eq, ek, n, largest - 7, quantum, generic);
  const double result = fabs(*sum) + error;
  return result > 0 ? error + power(exponent_of(result) - FRACTION) : error;
}

static double sum_error(const fa_bound_narrow *x, int64_t row, int64_t key, int64_t width, bool generic) {
  double sum = 0, error = 0;
  for (int64_t d = 0; d < width; d += BLOCK) {
    const int64_t q = row * width + d, k = key * width + d;
    const int n = width - d < BLOCK ? (int)(width - d) : BLOCK;
    error = block_error(x->q + q, x->k + k, x->q_exponent + q, x->k_exponent + k, n, generic, &sum, error);
  }
  return error;
}

void fa_bound_narrow_scores(fa_bound_scratch *b, const fa_ref_call *c, const fa_ref_rows *r, int64_t j0,
                            int64_t n, const double *s) {
  const fa_bound_narrow *x = &b->narrow;
  for (int64_t i = 0; i < r->n; ++i)
    for (int64_t j = 0; j < n; ++j) {
      const double by = fabs(c->p->scale * x->q_descale[i] * x->k_descale[j0 + j]);
      b->e_logit[i * n + j] =
          s[i * n + j] == -INFINITY ? 0 : (float)(1.0001 * by * sum_error(x, i, j0 + j, c->d, c->generic));
    }
}
