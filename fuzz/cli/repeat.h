/* repro and shrink of a report whose candidate nobody trusts: behind the same wall, by the same rules, from the same
 * secret. */
#ifndef FA_FUZZ_CLI_REPEAT_H
#define FA_FUZZ_CLI_REPEAT_H

#include "fuzz/options/command.h"

struct cJSON;

typedef struct fa_repeat {
  fa_cli cli;            /* the command as it was given, with what the report says of the mode */
  struct cJSON *root;    /* owned: the report; NULL: its candidate was trusted, or --backend names another */
  const char **words[4]; /* owned: of cli's without, allow, backend, hide */
} fa_repeat;

/* Reads the reports that cli names. The layer hidden is left out, since nothing is drawn beside the failures. FA_ERR_INPUT:
 * other reports beside one of an untrusted candidate; it was merged of runs with several secrets or rules; or no secret is
 * in it, as long as the run is not over. */
fa_status fa_repeat_open(const fa_cli *cli, fa_repeat *out, fa_error *err);
void fa_repeat_free(fa_repeat *r);

/* The number that a failure had in its run: what an untrusted candidate was tried with follows from it. A report of an older
 * version lacks it: 0. */
int64_t fa_repeat_number(const struct cJSON *failure);

/* FA_ERR_INPUT: the candidate says another hello than in the report, and is held to it. sha256: of what it says now. */
fa_status fa_repeat_check_contract(const fa_repeat *r, const char *sha256, fa_error *err);

#endif
