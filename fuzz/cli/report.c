/* report: merges reports, and writes counts, JUnit XML, an HTML page or a merged report; or compares two. */
#include "fuzz/cli/commands.h"
#include "fuzz/coverage/words.h"
#include "report/causes/collect.h"
#include "report/causes/print.h"
#include "report/compare.h"
#include "report/html/page.h"
#include "report/journal_line.h"
#include "report/printed.h"
#include "report/text/line.h"

#include <cjson/cJSON.h>

#include <stdlib.h>

/* Prints results that differ between the reports: the run is not reproducible, or the builds differ. */
static void say_contradictions(const cJSON *merged) {
  enum { AT_MOST = 20 };
  const cJSON *list = cJSON_GetObjectItemCaseSensitive(merged, "contradictions"), *c, *r;
  int n = 0;
  cJSON_ArrayForEach(c, list) {
    if (n++ == AT_MOST) break;
    fprintf(stderr, "fa-verify: %s (%s): both results stay:", fa_report_string(c, "name"),
            fa_report_string(c, "backend"));
    cJSON_ArrayForEach(r, cJSON_GetObjectItemCaseSensitive(c, "results"))
        fprintf(stderr, " %s r=%.3g in %s;", fa_report_string(r, "state"), fa_report_number(r, "worst_ratio"),
                fa_report_string(r, "report"));
    fputc('\n', stderr);
  }
  if (n > AT_MOST)
    fprintf(stderr, "fa-verify: %d contradictions in all: \"contradictions\" of the merged report\n",
            cJSON_GetArraySize(list));
}

/* Prints all counts on stdout. */
static void print_counts(const cJSON *merged) {
  const fa_line_style style = {.verbosity = 1};
  fa_summary sum;
  fa_report_read_summary(merged, &sum);
  fa_line_summary(stdout, &sum, &style);
}

/* Counts again what --require asks for; *code: 1 if not all of it was judged. */
static fa_status require_now(const char *text, cJSON *merged, int *code, fa_error *err) {
  fa_require r;
  fa_status status = fa_require_read(text, fa_word_at, &r, err);
  if (status != FA_OK) return status;
  status = fa_require_recount(&r, merged, err);
  if (status == FA_OK && fa_require_unmet(&r)) {
    fa_require_print(&r, stderr);
    *code = FA_EXIT_MISMATCH;
  }
  fa_require_free(&r);
  return status;
}

/* The failures of all reports put together anew. */
static fa_status find_causes(cJSON *merged, const char *program, fa_error *err) {
  fa_causes *causes = fa_causes_make();
  cJSON *groups = NULL;
  fa_status status = causes ? FA_OK : fa_fail(err, FA_ERR_MEMORY, "out of memory");
  if (status == FA_OK) status = fa_causes_note_report(causes, merged, err);
  if (status == FA_OK)
    status = fa_causes_conclude(causes, cJSON_GetObjectItemCaseSensitive(merged, "failures"), NULL, program,
                                &groups, err);
  if (status == FA_OK) {
    cJSON_DeleteItemFromObjectCaseSensitive(merged, "groups");
    cJSON_AddItemToObject(merged, "groups", groups);
  }
  fa_causes_free(causes);
  return status;
}

/* --compare A B: exit code 1 if a case fails in B alone. */
static int compare(const fa_cli *cli) {
  fa_error err = {""};
  cJSON *report[2] = {NULL, NULL}, *comparison = NULL;
  const char *const *path = (const char *const *)cli->words.v;
  fa_status status = FA_OK;
  int code = FA_EXIT_PASSED;
  if (cli->words.n != 2 || cli->merge || cli->junit || cli->require)
    return fa_cli_usage_error("report --compare: two reports are needed, and of the outputs only --html");
  for (int i = 0; status == FA_OK && i < 2; ++i) status = fa_report_load(path[i], &report[i], &err);
  if (status == FA_OK) status = fa_report_compare(report[0], report[1], path[0], path[1], &comparison, &err);
  if (status == FA_OK) {
    fa_report_print_comparison(stdout, comparison, cli->verbose);
    if (fa_report_new_failures(comparison)) code = FA_EXIT_MISMATCH;
    if (cli->html) status = fa_page_write(report[1], comparison, cli->html, &err);
  }
  cJSON_Delete(comparison);
  cJSON_Delete(report[0]);
  cJSON_Delete(report[1]);
  return status == FA_OK ? code : fa_cli_fail(status, &err);
}

int fa_command_report(const fa_cli *cli) {
  fa_error err = {""};
  if (cli->words.n == 0) return fa_cli_usage_error("report: FILE.json... is needed");
  if (cli->compare) return compare(cli);
  int n = cli->words.n, code = FA_EXIT_PASSED;
  cJSON **reports = calloc((size_t)n, sizeof(cJSON *)), *merged = NULL;
  fa_status status = reports ? FA_OK : fa_fail(&err, FA_ERR_MEMORY, "out of memory");
  for (int i = 0; status == FA_OK && i < n; ++i) status = fa_report_load(cli->words.v[i], &reports[i], &err);
  if (status == FA_OK) status = fa_report_merge(reports, (const char *const *)cli->words.v, n, &merged, &err);
  if (status == FA_OK) say_contradictions(merged);
  if (status == FA_OK) status = find_causes(merged, cli->program, &err);
  if (status == FA_OK && cli->require) status = require_now(cli->require, merged, &code, &err);
  if (status == FA_OK && !cli->junit && !cli->merge && !cli->html) {
    fa_causes_print(stdout, cJSON_GetObjectItemCaseSensitive(merged, "groups"), cli->verbose);
    print_counts(merged);
  }
  if (status == FA_OK && cli->no_times) fa_report_zero_times(merged);
  if (status == FA_OK && cli->html) status = fa_page_write(merged, NULL, cli->html, &err);
  if (status == FA_OK && cli->junit) status = fa_report_write_junit(merged, cli->junit, &err);
  if (status == FA_OK && cli->merge) {
    fa_report_keep_digits(merged); /* last: numbers become text here */
    status = fa_report_save(merged, cli->merge, &err);
  }
  for (int i = 0; reports && i < n; ++i) cJSON_Delete(reports[i]);
  free(reports);
  cJSON_Delete(merged);
  return status == FA_OK ? code : fa_cli_fail(status, &err);
}
