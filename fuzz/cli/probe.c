/* probe: finds out by asking what a backend's conventions and arithmetic are. */
#include "cases/base/atomic_file.h"
#include "fuzz/cli/commands.h"
#include "fuzz/options/choose_backend.h"
#include "fuzz/probe/apart.h"
#include "fuzz/probe/run.h"
#include "fuzz/probe/text.h"

#include <cjson/cJSON.h>

#include <stdlib.h>
#include <string.h>

/* kinds: of questions, by element type. */
static void read_dtypes(const fa_cli *cli, unsigned *kinds) {
  for (int t = 0; t < FA_PROBE_DTYPES; ++t) kinds[t] = cli->dtype.n ? 0 : FA_PROBE_ALL;
  for (int i = 0; i < cli->dtype.n; ++i) {
    fa_dtype t;
    FA_ASSERT(fa_dtype_from_name(cli->dtype.v[i], &t) &&
              (int)t < FA_PROBE_DTYPES); /* the option's row lists them */
    kinds[t] = FA_PROBE_ALL;
  }
}

static fa_status write_json(const fa_cli *cli, const fa_choice *choice, const fa_probe_reports *r,
                            cJSON *hello, fa_error *err) {
  cJSON *root = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(root, "probes");
  cJSON_AddStringToObject(root, "backend", choice->spec);
  for (int t = 0; t < FA_PROBE_DTYPES; ++t)
    if (r->of[t].n || r->of[t].why_not[0]) cJSON_AddItemToArray(list, fa_probe_json(&r->of[t]));
  cJSON_AddItemReferenceToObject(root, "hello", hello);
  char *text = cJSON_Print(root);
  const fa_status status = text ? fa_file_write_atomic(cli->json, text, strlen(text), err)
                                : fa_fail(err, FA_ERR_MEMORY, "out of memory");
  free(text);
  cJSON_Delete(root);
  return status;
}

static void print_hello(cJSON *hello) {
  char *text = cJSON_Print(hello);
  if (text) printf("\nhello, as far as it was found:\n%s\n", text);
  free(text);
}

/* Prints everything; returns the exit code. */
static int conclude(const fa_cli *cli, const fa_choice *choice, fa_probe_reports *r) {
  int contradictions = 0, usable = 0;
  fa_error err = {""};
  fa_status status = FA_OK;
  for (int t = FA_PROBE_DTYPES - 1; t >= 0; --t) {
    if (!r->of[t].n && !r->of[t].why_not[0]) continue;
    contradictions += fa_probe_contradictions(&r->of[t], choice->said.declares ? &choice->said.of[t] : NULL);
    usable += r->of[t].usable;
    fa_probe_print(stdout, &r->of[t], cli->verbose);
  }
  cJSON *hello = fa_probe_hello(r->of, FA_PROBE_DTYPES);
  if (usable && !cli->quiet) print_hello(hello);
  if (cli->json) status = write_json(cli, choice, r, hello, &err);
  cJSON_Delete(hello);
  if (status != FA_OK) return fa_cli_fail(status, &err);
  printf("%d element types, %d contradictions\n", usable, contradictions);
  if (!usable) return FA_EXIT_NOTHING_JUDGED;
  return contradictions && cli->strict ? FA_EXIT_MISMATCH : FA_EXIT_PASSED;
}

int fa_command_probe(const fa_cli *cli) {
  fa_error err = {""};
  unsigned kinds[FA_PROBE_DTYPES];
  fa_choice choice;
  if (cli->words.n)
    return fa_cli_usage_error("probe: what is %s? the subject is named with --backend", cli->words.v[0]);
  if (cli->backend.n > 1) return fa_cli_usage_error("probe: one --backend at a time");
  read_dtypes(cli, kinds);
  fa_status status = cli->json ? fa_file_check_writable(cli->json, &err) : FA_OK;
  if (status == FA_OK)
    status = cli->backend.n ? fa_choose_backend(cli->backends, cli->backend.v[0], &choice, &err)
                            : fa_choose_default(cli->backends, cli->quiet, &choice, &err);
  if (status != FA_OK) return fa_cli_fail(status, &err);
  fa_probe_reports *r = malloc(sizeof *r);
  if (!r) return fa_cli_fail(FA_ERR_MEMORY, &(fa_error){"out of memory"});

  status = fa_probe_apart(&choice, kinds, cli->timeout_s, !cli->quiet && !cli->no_progress, r, &err);
  const int code = status == FA_OK ? conclude(cli, &choice, r) : fa_cli_fail(status, &err);
  free(r);
  return code;
}
