/* Judges one timed output by the float64 reference. */
#ifndef FA_FUZZ_TIMING_CHECK_H
#define FA_FUZZ_TIMING_CHECK_H

#include "cases/recipe/case.h"
#include "cases/vocabulary/declaration.h"

typedef struct fa_check {
  const fa_case *c;           /* the case whose problem it is, but for the scale */
  double scale;               /* that this problem had */
  const fa_declaration *said; /* by the child */
  const fa_profile *profile;
  unsigned passes;
  int n_threads;
} fa_check;

/* got: outputs that began as poison A; in: the pristine inputs. A call that would take long is judged in some sequences and
 * heads, drawn anew each time, if it is of the kind that falls apart into them. "" in why: it is right. */
fa_status fa_check_output(const fa_check *x, const fa_tensors *in, const fa_tensors *got, char *why,
                          size_t size, fa_error *err);

#endif
