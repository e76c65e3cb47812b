/* What the reference wants of a case, in a line for each output, to be compared with what is recorded: sums over its elements, which
 * count differently by place, so that two cannot change places. */
#ifndef FA_TESTS_HELD_DIGEST_H
#define FA_TESTS_HELD_DIGEST_H

#include "cases/tensors/set.h"
#include "ref/engine/want.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { DIGEST_SUMS = 5 };

/* Of value, quant, accum, noise and scale. */
typedef struct digest {
  double sum[DIGEST_SUMS];
  long long n, odd; /* elements, and those of them that are not finite in one of the five */
} digest;

digest digest_of(const fa_want *w);
/* Of a case's own data: q, k, v, do, and all else together. */
digest digest_of_inputs(const fa_tensors *in);
void digest_add(digest *d, int which, double x, int64_t element);

/* A file of lines, which are compared or written. */
typedef struct digest_book {
  FILE *f;
  bool writes;
} digest_book;

/* way: the set, or whatever else tells two lines of a case apart. */
void digest_hold(digest_book *b, const char *name, const char *way, fa_tensor_id id, const digest *d);
/* Every output; a second line, its way with a +, of what few of them have: the row's error of the sum, the steepest slope, and
 * least and most magnitudes. */
void digest_hold_all(digest_book *b, const char *name, const char *way, const fa_wants *w);
/* An output as a kernel would have made it. */
fa_tensor digest_tensor_of(const fa_want *w);
/* Checks that a change is seen. */
void digest_check(void);

#endif
