/* The same call by the judge on the CPU and by the one on a machine (ref/cuda), element by element. */
#ifndef FA_TESTS_DEVICE_EQUAL_H
#define FA_TESTS_DEVICE_EQUAL_H

#include "cases/recipe/case.h"
#include "ref/cuda/judge.h"

/* The largest differences so far, and how many elements differ by more than may be (equal.c). */
typedef struct two_judges {
  int64_t calls, refused, elements;
  int64_t wrong;              /* elements */
  double value, bound, noise; /* in bounds; relative */
  char first_wrong[512];      /* "" or a sentence */
  int64_t cases;              /* asked to be compared so far */
  int64_t only;               /* the one of them, from 1, that is; 0: all */
  int64_t failed_at;          /* the first of them with a failed check; 0: none */
} two_judges;

/* Runs ref-f32 on the case and has both judge it: forward, and backward from its O and LSE. */
void compare_judges(const fa_case *c, fa_judge_machine *m, two_judges *to);
/* Case `index` of a profile. */
void compare_judges_on(const char *profile, uint64_t seed, int64_t index, fa_judge_machine *m,
                       two_judges *to);

#endif
