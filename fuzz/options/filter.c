#include "fuzz/options/filter.h"

#include <stdio.h>

fa_status fa_filter_compile(const fa_cli *cli, fa_filter *out, fa_error *err) {
  *out = (fa_filter){.text = NULL};
  if (!cli->filter) return FA_OK;
  const int code = regcomp(&out->regex, cli->filter, REG_EXTENDED | REG_NOSUB);
  if (code == 0) {
    out->text = cli->filter;
    return FA_OK;
  }
  char why[200];
  regerror(code, &out->regex, why, sizeof why);
  return fa_fail(err, FA_ERR_INPUT, "--filter %s: no POSIX extended regular expression: %s", cli->filter,
                 why);
}

bool fa_filter_passes(fa_filter *f, const char *name) {
  const bool passes = !f->text || regexec(&f->regex, name, 0, NULL, 0) == 0;
  f->n_passed += passes;
  return passes;
}

void fa_filter_report(const fa_filter *f, int64_t n_cases, int64_t n_shards) {
  if (!f->text || f->n_passed > 0 || n_cases == 0) return;
  fprintf(stderr, "fa-verify: --filter '%s' matches 0 of %lld case%s%s\n", f->text, (long long)n_cases,
          n_cases == 1 ? "" : "s", n_shards > 1 ? " of this shard" : "");
}

void fa_filter_free(fa_filter *f) {
  if (f->text) regfree(&f->regex);
  f->text = NULL;
}
