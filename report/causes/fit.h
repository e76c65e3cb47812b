/* The shortest conjunction of features that tells a group of failures from the cases that pass.
 *
 * A predicate is worth what it saves: the bits to say which cases fail, once without it and once with it, less the bits to
 * say the predicate. So a feature that sorts out a few passing cases by chance is not taken, one that sorts out many is,
 * and of equally good predicates the shorter and plainer one wins. Failures of other groups count an eighth of a passing
 * case: that they satisfy the predicate is no wonder if their cause is another. */
#ifndef FA_REPORT_CAUSES_FIT_H
#define FA_REPORT_CAUSES_FIT_H

#include "report/causes/rows.h"

#include <stddef.h>

#define FA_PREDICATE_LITERALS 4

typedef struct fa_predicate {
  int n;
  const fa_literal *literal[FA_PREDICATE_LITERALS];
  int64_t failing, others,
      other_failures; /* that satisfy it: of the group, of passing cases, of other groups */
  double cost;        /* bits */
} fa_predicate;

typedef struct fa_fit {
  const fa_cause_rows *rows;
  const uint64_t *group; /* bits of failing cases */
  int64_t n_group;
  double share; /* of the group that must satisfy it, above 0 */
  double
      precision; /* of the cases that satisfy it and pass or are of the group, this share must be of the group */
} fa_fit;

/* The best predicate; without literals if none pays. False: out of memory, or none has the precision. */
bool fa_fit_best(const fa_fit *f, fa_predicate *out);
/* Sets counts and cost of a predicate whose literals are given. */
void fa_fit_evaluate(const fa_fit *f, fa_predicate *p);
/* Bits of a predicate with literals of so many bits that holds for so many cases of each kind. */
double fa_predicate_cost(const fa_fit *f, int bits, int64_t inside, int64_t other_failures, double others);
/* Puts the literals into the order of the rows', which is the natural one. */
void fa_predicate_sort(fa_predicate *p);
/* Predicates of as many literals that hold for as many cases of each kind; returns how many. */
int fa_fit_alternatives(const fa_fit *f, const fa_predicate *p, fa_predicate *out, int most);
/* The share of the group among what satisfies the predicate and does not fail otherwise. */
double fa_predicate_precision(const fa_predicate *p);
/* True if the predicate holds for this failing case. */
bool fa_predicate_holds(const fa_predicate *p, int64_t failing_case);
/* A literal of the predicate, as one says it of the failing cases that the predicate holds for: of packed sequences
 * some fulfil what others do not. */
void fa_predicate_say(const fa_cause_rows *rows, const fa_predicate *p, int literal, char *text, size_t size);
/* All of them: "a && b"; "" without literals. */
void fa_predicate_text(const fa_cause_rows *rows, const fa_predicate *p, char *text, size_t size);

#endif
