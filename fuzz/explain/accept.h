/* Whether a mistake explains a failed tensor. */
#ifndef FA_FUZZ_EXPLAIN_ACCEPT_H
#define FA_FUZZ_EXPLAIN_ACCEPT_H

#include "fuzz/explain/hypothesis.h"
#include "fuzz/explain/scope.h"

/* What came of holding the subject's elements against a mistake's wants. */
typedef struct fa_tally {
  int64_t compared, wrong; /* by the right wants */
  int64_t explained;       /* of the wrong ones: within the mistake's bounds */
  int64_t broken;          /* of the right ones: not within them */
  int64_t broken_beside;   /* of these: in a row with wrong ones */
  int64_t rows_wrong;      /* rows with a wrong element, up to eight */
  int64_t last_row;
  double away_right, away_mistaken; /* of the wrong, finite ones: sums of distances from both values */
  double bound_right, bound_mistaken;
  double far_right,
      far_mistaken; /* of a rounding, of the elements outside of the right bounds alone: as away_ */
} fa_tally;

/* wants: of the mistake, or unused where m->moved or m->zero says what an element should be. */
void fa_tally_take(const fa_failure *x, const fa_mistake *m, const fa_wants *wants, const fa_failed *t,
                   const fa_scope *scope, fa_tally *out);

typedef enum fa_accepted { FA_NOT_EXPLAINED, FA_EXPLAINED_IN_PART, FA_EXPLAINED } fa_accepted;

/* At least 95 % of the wrong elements are explained, they are much nearer to the mistake's values than to the right
 * ones, and its bounds are not wide. Besides, either hardly any element contradicts it, or (IN_PART: it happens in some
 * places only) it explains all of at least 32 elements in at least two rows, and contradicts nothing in these. */
fa_accepted fa_tally_accept(const fa_tally *t);
/* Whether it may be worth its bounds: the values alone are nearer to the subject's than the right ones. */
bool fa_tally_is_promising(const fa_tally *t);
/* Of a mistake that rounds something, whose tally has all elements for wrong ones: its bounds are as wide as that rounding
 * makes them, so that what counts is whether the errors follow it from element to element. Over enough elements the
 * distance from the mistake's values is less than from the right ones, as no noise makes it; both are rounded to the
 * output's type before, which a right kernel does too. Nor may the elements outside of the right bounds say otherwise. */
fa_accepted fa_tally_accept_rounding(const fa_tally *t);

#endif
