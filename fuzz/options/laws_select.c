#include "fuzz/options/laws_select.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

fa_status fa_law_select(const fa_cli *cli, fa_law_selection *out, fa_error *err) {
  bool wanted[FA_N_LAWS] = {false};
  for (int i = 0; i < cli->law.n; ++i) {
    fa_law law;
    if (!fa_law_from_name(cli->law.v[i], &law) || law == FA_LAW_NONE)
      return fa_fail(err, FA_ERR_INPUT, "--law %s: there is none", cli->law.v[i]);
    wanted[law] = true;
  }
  out->n = 0;
  for (int k = FA_LAW_NONE + 1; k < FA_N_LAWS; ++k)
    if (wanted[k] || (cli->laws && cli->law.n == 0)) out->v[out->n++] = (fa_law)k;
  return FA_OK;
}

fa_status fa_law_apply(fa_case *c, fa_law law) {
  const char *name = fa_law_describe(law)->name;
  const size_t size = strlen(c->name) + strlen(name) + 8;
  char *text = malloc(size);
  if (text) snprintf(text, size, "%s law:%s", c->name, name);
  const fa_status status = text ? fa_case_set_name(c, text) : FA_ERR_MEMORY;
  free(text);
  c->law = law;
  if (status != FA_OK) fa_case_free(c);
  return status;
}
