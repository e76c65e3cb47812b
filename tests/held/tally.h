/* What formulas give for many drawn arguments, in a line for each number that they return, to be compared with what is recorded. */
#ifndef FA_TESTS_HELD_TALLY_H
#define FA_TESTS_HELD_TALLY_H

#include <stdbool.h>

/* One number of a formula: sum of the logarithms of its magnitudes, which count differently by draw; and how many were 0, negative,
 * infinite or NaN, likewise. A change of one part in 100,000 of a single draw is seen. */
typedef struct tally_line {
  char name[48];
  double logs;
  long long n, odd;
} tally_line;

typedef struct tally {
  tally_line line[256];
  int n;
} tally;

void tally_add(tally *t, const char *name, double x);
/* Compares with the file, or writes it; checks count (tests/support/check.h). path: from the top of the source tree. */
void tally_hold(const tally *t, const char *path, bool writes);

#endif
