#include "fuzz/options/cases_select.h"

#include "cases/codec/file.h"
#include "cases/codec/json.h"
#include "fuzz/generate/draw.h"

#include <string.h>

/* The schema is in the folder of the case files, and a wildcard over cases/ must work as expected. */
static bool is_schema(const char *path) {
  const char *slash = strrchr(path, '/');
  if (strcmp(slash ? slash + 1 : path, "schema.json") != 0) return false;
  fprintf(stderr, "%s: the schema of case files, left out\n", path);
  return true;
}

fa_status fa_cli_load_cases(const fa_cli *cli, fa_case_list *list, fa_error *err) {
  fa_status status = FA_OK;
  for (int i = 0; status == FA_OK && i < cli->cases.n; ++i) {
    if (is_schema(cli->cases.v[i])) continue;
    status = fa_case_file_load(cli->cases.v[i], fa_generate, list, err);
    if (status == FA_ERR_IO) status = FA_ERR_INPUT; /* the user named it */
  }
  for (int i = 0; status == FA_OK && i < cli->case_text.n; ++i) {
    fa_case c;
    status = fa_case_from_text(cli->case_text.v[i], &c, err);
    if (status != FA_OK)
      fa_error_prefix(err, "--case");
    else
      status = fa_case_list_push(list, &c);
  }
  return status;
}

fa_status fa_filter_compile(const fa_cli *cli, regex_t *filter, bool *has, fa_error *err) {
  *has = cli->filter != NULL;
  if (!*has) return FA_OK;
  int code = regcomp(filter, cli->filter, REG_EXTENDED | REG_NOSUB);
  if (code == 0) return FA_OK;
  char why[200];
  regerror(code, filter, why, sizeof why);
  *has = false;
  return fa_fail(err, FA_ERR_INPUT, "--filter %s: no POSIX extended regular expression: %s", cli->filter,
                 why);
}
