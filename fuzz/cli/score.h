/* report --score. */
#ifndef FA_FUZZ_CLI_SCORE_H
#define FA_FUZZ_CLI_SCORE_H

#include "fuzz/options/command.h"
#include "report/merge/streamed.h"

/* True if the file is what `bench --report` writes, by its first key. */
bool fa_score_is_bench(const char *path);
/* Writes --score OUT from the reports, and the times of the first of the words that has some; prints the score, unless OUT
 * is stdout ("-"). */
fa_status fa_score_write(const fa_cli *cli, fa_merged *merged, fa_error *err);

#endif
