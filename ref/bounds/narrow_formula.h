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

/* What a sum of products is exactly so far, and between which two the unit's may lie: exact + low .. exact + high. */
typedef struct fa_bound_narrow_sum {
  double exact, low, high;
} fa_bound_narrow_sum;

/* What all products of a block together change by where each is cut toward 0 to whole quanta: exact. */
FA_BOTH double fa_bound_cut_products(fa_bound_stored q, fa_bound_stored k, int n, int largest) {
  const double quantum = fa_bound_power(largest - FA_NARROW_FRACTION),
               per_quantum = fa_bound_power(FA_NARROW_FRACTION - largest);
  double change = 0;
  for (int d = 0; d < n; ++d) {
    const double x = (double)q.x[d] * (double)k.x[d];
    change += (int)(x * per_quantum) * quantum - x; /* fewer than 2^15 quanta, since no exponent is larger */
  }
  return change;
}

/* Less than `most` of a number between low and high, toward 0. */
FA_BOTH void fa_bound_cut_to_zero(double low, double high, double most, fa_bound_narrow_sum *s) {
  if (high > 0) s->low -= fmin(most, high);
  if (low < 0) s->high += fmin(most, -low);
}

/* A block's sum where this is the largest exponent. The accumulator, a number of that many fraction bits, is cut if its own
 * exponent is smaller; so is the sum, of whole quanta then, if its own is larger. */
FA_BOTH fa_bound_narrow_sum fa_bound_block_sum(fa_bound_narrow_sum s, double total, double change,
                                               int largest, int least) {
  const double quantum = fa_bound_power(largest - FA_NARROW_FRACTION);
  if (least < largest) fa_bound_cut_to_zero(s.exact + s.low, s.exact + s.high, quantum, &s);
  s.exact += total;
  s.low += change;
  s.high += change;
  const double low = s.exact + s.low, high = s.exact + s.high;
  const int own = fa_bound_exponent_of(fmax(fabs(low), fabs(high)));
  if (own > largest) fa_bound_cut_to_zero(low, high, fa_bound_power(own - FA_NARROW_FRACTION) - quantum, &s);
  return s;
}

/* One block more. The largest exponent is one of the products', or the accumulator's: of those that it may be, the widest. */
FA_BOTH fa_bound_narrow_sum fa_bound_add_block(fa_bound_narrow_sum s, fa_bound_stored q, fa_bound_stored k,
                                               int n) {
  const double low = s.exact + s.low, high = s.exact + s.high, near = fmin(fabs(low), fabs(high));
  const double far = fmax(fabs(low), fabs(high)) * (1 + 0x1p-40); /* sums of doubles may be rounded */
  const int least = low <= 0 && high >= 0 ? FA_NO_EXPONENT : fa_bound_exponent_of(near);
  int most = FA_NO_EXPONENT;
  double total = 0;
  for (int d = 0; d < n; ++d) {
    const int e = q.exponent[d] + k.exponent[d];
    most = e > most ? e : most;
    total += (double)q.x[d] * (double)k.x[d];
  }
  if (most <= FA_NO_EXPONENT / 2) return s; /* all products are 0 */
  const int last = far > 0 && fa_bound_exponent_of(far) > most ? fa_bound_exponent_of(far) : most;
  fa_bound_narrow_sum out = {s.exact + total, INFINITY, -INFINITY};
  for (int largest = least > most ? least : most; largest <= last; ++largest) {
    const fa_bound_narrow_sum one =
        fa_bound_block_sum(s, total, fa_bound_cut_products(q, k, n, largest), largest, least);
    out.low = fmin(out.low, one.low);
    out.high = fmax(out.high, one.high);
  }
  return out;
}

/* What the sum of the products of two rows may be off by. by: what it is multiplied by, the scale and both descales. */
FA_BOTH float fa_bound_narrow_score(fa_bound_stored q, fa_bound_stored k, int64_t width, double by) {
  fa_bound_narrow_sum s = {0, 0, 0};
  for (int64_t d = 0; d < width; d += FA_NARROW_BLOCK) {
    const fa_bound_stored some_q = {q.x + d, q.exponent + d}, some_k = {k.x + d, k.exponent + d};
    s = fa_bound_add_block(s, some_q, some_k,
                           width - d < FA_NARROW_BLOCK ? (int)(width - d) : FA_NARROW_BLOCK);
  }
  return (float)(1.0001 * by * fmax(fabs(s.low), fabs(s.high)));
}

#endif
