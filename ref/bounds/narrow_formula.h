/* What a sum of products of 8 bits loses in a matrix unit whose accumulator has 13 fraction bits: a walk over the products in the
 * order in which the unit adds them (docs/reference/bounds.md, "Eight bits"). The judge on a device walks by the same lines. */
#ifndef FA_REF_BOUNDS_NARROW_FORMULA_H
#define FA_REF_BOUNDS_NARROW_FORMULA_H

#include "ref/bounds/sums.h"

/* 32 products and the accumulator are aligned to the largest exponent, that of a product being the sum of its factors'; each
 * is cut to 13 fraction bits of it, and so is the sum. */
enum { FA_NARROW_BLOCK = 32, FA_NARROW_FRACTION = 13 };
enum { FA_NO_EXPONENT = -2000 }; /* of 0 */

/* Whether a call's scores are bounded so: stored queries and keys of 8 bits, narrow sums. */
FA_BOTH bool fa_bound_walks_scores(const fa_ref_call *c) {
  return c->profile && c->p->quantized.queries &&
         c->profile->accumulator[FA_PRODUCT_QK] == FA_ACCUMULATOR_NARROW;
}

FA_BOTH int fa_bound_exponent_of(double x) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  return (int)(bits >> 52 & 0x7ff) - 1023;
}

FA_BOTH double fa_bound_power(int exponent) {
  const uint64_t bits = (uint64_t)(exponent + 1023) << 52;
  double x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

/* Of a stored number of a type. Subnormals have the least exponent. */
FA_BOTH int fa_bound_stored_exponent(fa_dtype t, double x) {
  const int own = fa_bound_exponent_of(x), least = t == FA_E4M3 ? -6 : -14;
  return x == 0 ? FA_NO_EXPONENT : own > least ? own : least;
}

/* Stored numbers of a row, and their exponents. */
typedef struct fa_bound_stored {
  const float *x;
  const int *exponent;
} fa_bound_stored;

/* What products that lie too low lose, each less than a quantum and less than itself. In generic data their signs are
 * independent: four times the root of the mean squares of numbers between 0 and that much. */
FA_BOTH double fa_bound_lost_products(fa_bound_stored q, fa_bound_stored k, int n, int least, double quantum,
                                      bool generic) {
  double lost = 0, squares = 0;
  for (int d = 0; d < n; ++d) {
    const double x = fabs((double)q.x[d] * (double)k.x[d]),
                 cut = q.exponent[d] + k.exponent[d] < least ? fmin(x, quantum) : 0;
    lost += cut;
    squares += cut * cut;
  }
  return generic ? fmin(lost, 4 * sqrt(squares / 3)) : lost;
}

/* What one block adds to the error of a sum that is exactly *sum so far, and may be off by error. A product has 8 significant
 * bits, and loses nothing within 7 of the largest exponent. */
FA_BOTH double fa_bound_block_error(fa_bound_stored q, fa_bound_stored k, int n, bool generic, double *sum,
                                    double error) {
  int most = FA_NO_EXPONENT;
  double total = 0;
  for (int d = 0; d < n; ++d) {
    const int e = q.exponent[d] + k.exponent[d];
    most = e > most ? e : most;
    total += (double)q.x[d] * (double)k.x[d];
  }
  const double before = fabs(*sum);
  *sum += total;
  if (most <= FA_NO_EXPONENT / 2) return error; /* all products are 0 */
  const int above = before + error > 0 ? fa_bound_exponent_of(before + error) : FA_NO_EXPONENT;
  const int below = before - error > 0 ? fa_bound_exponent_of(before - error) : FA_NO_EXPONENT;
  const int largest = above > most ? above : most;
  const double quantum = fa_bound_power(largest - FA_NARROW_FRACTION);
  if (before + error > 0 && below < largest) error += quantum;
  error += fa_bound_lost_products(q, k, n, largest - 7, quantum, generic);
  const double result = fabs(*sum) + error;
  return result > 0 ? error + fa_bound_power(fa_bound_exponent_of(result) - FA_NARROW_FRACTION) : error;
}

/* What the sum of the products of two rows may be off by. */
FA_BOTH double fa_bound_narrow_sum(fa_bound_stored q, fa_bound_stored k, int64_t width, bool generic) {
  double sum = 0, error = 0;
  for (int64_t d = 0; d < width; d += FA_NARROW_BLOCK) {
    const fa_bound_stored some_q = {q.x + d, q.exponent + d}, some_k = {k.x + d, k.exponent + d};
    const int n = width - d < FA_NARROW_BLOCK ? (int)(width - d) : FA_NARROW_BLOCK;
    error = fa_bound_block_error(some_q, some_k, n, generic, &sum, error);
  }
  return error;
}

/* by: what the sum is multiplied by, the scale and both descales. */
FA_BOTH float fa_bound_narrow_score(fa_bound_stored q, fa_bound_stored k, int64_t width, bool generic,
                                    double by) {
  return (float)(1.0001 * by * fa_bound_narrow_sum(q, k, width, generic));
}

#endif
