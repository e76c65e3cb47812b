/* Which features hold for which cases, as bits: a row a judged case, a column a feature. Failing and passing cases are
 * apart, because they are asked different questions: what has a group of failures in common, and how many passing cases
 * have it too. */
#ifndef FA_REPORT_CAUSES_ROWS_H
#define FA_REPORT_CAUSES_ROWS_H

#include "cases/base/status.h"

#include <stdbool.h>
#include <stdint.h>

/* What is known of a case; "" where it is not. */
typedef struct fa_cause_facts {
  const char *features, *shape; /* as in reports */
  const char *kernel, *backward_kernel, *backend;
  bool backward_left_out;
} fa_cause_facts;

/* A feature or its negation. Where a case's facts do not tell, it holds for passing cases and for no failing one:
 * nothing is told apart by not being known. */
typedef struct fa_literal {
  const char *text; /* owned by the rows */
  int bits;         /* what a predicate pays for it */
  int feature;
  uint64_t *failing, *passing; /* owned: bit i: it holds for case i */
  uint64_t *sample;            /* of the passing cases, where there are many; otherwise equal to passing */
} fa_literal;

typedef struct fa_cause_rows fa_cause_rows;

fa_cause_rows *fa_cause_rows_make(void); /* NULL: out of memory */
void fa_cause_rows_free(fa_cause_rows *r);
/* Adds a judged case; its place is the number of failing or passing ones before it. */
fa_status fa_cause_rows_add(fa_cause_rows *r, bool failing, const fa_cause_facts *facts);
/* After the last case: makes the literals. */
fa_status fa_cause_rows_close(fa_cause_rows *r);

int64_t fa_cause_rows_failing(const fa_cause_rows *r);
int64_t fa_cause_rows_passing(const fa_cause_rows *r);
int64_t fa_cause_rows_sampled(const fa_cause_rows *r);
/* Whether sequences of this failing case differ in length (report/causes/features.h). */
bool fa_cause_rows_uneven(const fa_cause_rows *r, int64_t failing_case);
/* In a fixed order, the more natural first. */
int fa_cause_rows_literals(const fa_cause_rows *r, const fa_literal **out);

/* ---- sets of cases ---- */

#define FA_WORDS_OF(n) (((n) + 63) / 64)
static inline bool fa_bit(const uint64_t *bits, int64_t i) {
  return bits[i / 64] >> (i % 64) & 1;
}
static inline void fa_set_bit(uint64_t *bits, int64_t i) {
  bits[i / 64] |= UINT64_C(1) << (i % 64);
}
static inline int64_t fa_count_bits(const uint64_t *a, int64_t words) {
  int64_t n = 0;
  for (int64_t w = 0; w < words; ++w) n += __builtin_popcountll(a[w]);
  return n;
}
static inline int64_t fa_count_both(const uint64_t *a, const uint64_t *b, int64_t words) {
  int64_t n = 0;
  for (int64_t w = 0; w < words; ++w) n += __builtin_popcountll(a[w] & b[w]);
  return n;
}

#endif
