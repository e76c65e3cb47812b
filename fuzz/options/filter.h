/* --filter: the cases whose names match a regular expression. */
#ifndef FA_FUZZ_OPTIONS_FILTER_H
#define FA_FUZZ_OPTIONS_FILTER_H

#include "fuzz/options/command.h"

#include <regex.h>

typedef struct fa_filter {
  const char *text; /* NULL: every name passes */
  regex_t regex;
  int64_t n_passed;
} fa_filter;

/* FA_ERR_INPUT: not a regular expression. Also then fa_filter_free may follow. */
fa_status fa_filter_compile(const fa_cli *cli, fa_filter *out, fa_error *err);
/* Whether the name passes; counts. */
bool fa_filter_passes(fa_filter *f, const char *name);
/* Says so on stderr if none passed of n_cases > 0, which are all there are (n_shards 1), or a shard's. */
void fa_filter_report(const fa_filter *f, int64_t n_cases, int64_t n_shards);
void fa_filter_free(fa_filter *f);

#endif
