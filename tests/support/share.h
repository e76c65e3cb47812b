/* Long lists in shares: with FA_TEST_SHARE=N a test tries one item in N of its list, and the day chooses which, so that N days try all of
 * it. Without it everything is tried. FA_TEST_DAY, a whole number, takes another day's share; the default is today's (UTC). Some tests take
 * turns too (turn.sh). */
#ifndef FA_TESTS_SUPPORT_SHARE_H
#define FA_TESTS_SUPPORT_SHARE_H

#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

/* Whether item i of a list, i >= 0, is in the share, of which there are at most so many: a day tries one item in `most` then. */
static inline bool fa_share_of_has(int most, int i) {
  const char *share = getenv("FA_TEST_SHARE"), *day = getenv("FA_TEST_DAY");
  const long all = share ? strtol(share, NULL, 10) : 1, n = all < most ? all : most;
  return n <= 1 || (i + (day ? strtol(day, NULL, 10) : (long)(time(NULL) / 86400))) % n == 0;
}

/* Whether item i of a list, i >= 0, is in the share. */
static inline bool fa_share_has(int i) {
  return fa_share_of_has(INT_MAX, i);
}

#endif
