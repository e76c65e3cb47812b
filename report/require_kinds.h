/* Private to report/require*.c: the kinds of requirements. */
#ifndef FA_REPORT_REQUIRE_KINDS_H
#define FA_REPORT_REQUIRE_KINDS_H

#include "report/require.h"

enum {
  FA_REQUIRE_JUDGED,
  FA_REQUIRE_FEATURE,
  FA_REQUIRE_DTYPE,
  FA_REQUIRE_FAMILY,
  FA_REQUIRE_PASS,
  FA_REQUIRE_OUTPUT,
  FA_REQUIRE_CASES,
  FA_REQUIRE_WHOLE,
  FA_REQUIRE_N_KINDS
};

/* The keys of the JSON object. */
extern const char *const fa_require_keys[FA_REQUIRE_N_KINDS];

/* "90%" as 0.9; false: it is no share above 0. */
bool fa_require_share(const char *text, double *share);

#endif
