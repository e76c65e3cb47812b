/* Failures of reports as named on the command line: REPORT.json (all), REPORT.json:K (number K), and
 * REPORT.json:K.shrunk (what number K was shrunk to). */
#ifndef FA_FUZZ_ONE_FAILURE_WORD_H
#define FA_FUZZ_ONE_FAILURE_WORD_H

#include "cases/recipe/case.h"

struct cJSON;

typedef struct fa_failure_word {
  char path[4096];
  int64_t k; /* -1: all */
  bool shrunk;
} fa_failure_word;

/* If a file of this exact name exists, the word is a path. FA_ERR_INPUT: no number after the colon. */
fa_status fa_failure_word_read(const char *word, fa_failure_word *out, fa_error *err);

/* Case and schedule of an entry of "failures", or of its "shrunk". The caller owns the case. */
fa_status fa_failure_read(const struct cJSON *failure, bool shrunk, fa_case *c, uint64_t *schedule_seed,
                          fa_error *err);
/* The backend on which it failed; "" if the entry does not say. */
const char *fa_failure_backend(const struct cJSON *failure);

/* Calls visit for the word's failures. Of a run that is under way or was killed, they are those of its journal. FA_ERR_INPUT if there is no failure K. An error of visit ends the
 * iteration, and its message gets the place as a prefix. */
typedef fa_status fa_failure_visit(void *ctx, const struct cJSON *failure, bool shrunk, fa_error *err);
fa_status fa_failures_visit(const char *word, fa_failure_visit *visit, void *ctx, fa_error *err);

#endif
