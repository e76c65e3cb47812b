/* report: merges reports, and writes counts, JUnit XML, an HTML page or a merged report; or compares two. */
#include "fuzz/cli/commands.h"
#include "fuzz/cli/score.h"
#include "fuzz/coverage/words.h"
#include "report/causes/collect.h"
#include "report/causes/print.h"
#include "report/ci/annotations.h"
#include "report/claims.h"
#include "report/compare.h"
#include "report/html/page.h"
#include "report/merge/streamed.h"
#include "report/printed.h"
#include "report/text/line.h"
#include "report/untrusted/facts.h"

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

/* Prints by which rules a candidate that nobody trusts was judged. */
static void print_rules(const cJSON *merged) {
  fa_untrusted_fact fact[FA_UNTRUSTED_FACTS];
  const int n = fa_untrusted_facts(merged, fact);
  for (int i = 0; i < n; ++i) {
    printf("untrusted: %s: ", fact[i].label);
    fa_print_clean(stdout, fact[i].text);
    putchar('\n');
  }
}

/* Prints all counts on stdout. */
static void print_counts(fa_merged *merged) {
  const fa_line_style style = {.verbosity = 1};
  fa_summary sum;
  fa_report_read_summary(fa_merged_head(merged), &sum);
  sum.kernels = *fa_merged_kernels(merged);
  fa_line_summary(stdout, &sum, &style);
}

/* What is found out while the reports are read. */
typedef struct reading {
  fa_causes *causes;
  fa_require require; /* what --require asks for, counted again */
  bool required;
} reading;

static fa_status note(void *ctx, const fa_merged_case *c, fa_error *err) {
  reading *r = ctx;
  const fa_status status = r->required ? fa_require_note_entry(&r->require, c->entry, err) : FA_OK;
  return status == FA_OK ? fa_causes_note_passing_by(r->causes, c->entry, c->failure, c->place, err) : status;
}

static fa_status read_reports(const fa_cli *cli, reading *r, fa_merged **merged, fa_error *err) {
  int n = 0;
  fa_merge_source *source = calloc((size_t)cli->words.n, sizeof *source);
  r->causes = fa_causes_make();
  fa_status status = source && r->causes ? FA_OK : fa_fail(err, FA_ERR_MEMORY, "out of memory");
  for (int i = 0; source && i < cli->words.n; ++i) /* times are for the score alone */
    if (!cli->score || !fa_score_is_bench(cli->words.v[i])) source[n++].path = cli->words.v[i];
  if (status == FA_OK && n == 0)
    status = fa_fail(err, FA_ERR_INPUT, "report --score: a report of a run is needed");
  if (status == FA_OK && cli->require) status = fa_require_read(cli->require, fa_word_at, &r->require, err);
  r->required = status == FA_OK && cli->require;
  if (status == FA_OK) status = fa_merge_open(source, n, note, r, merged, err);
  free(source);
  return status;
}

static cJSON *read_failure(void *merged, int64_t place) {
  return fa_merged_failure(merged, place);
}

/* The failures of all reports put together anew. */
static fa_status find_causes(fa_causes *causes, fa_merged *merged, const char *program, fa_error *err) {
  cJSON *groups = NULL, *head = fa_merged_head(merged);
  const fa_status status = fa_causes_conclude_read(causes, read_failure, merged, program, &groups, err);
  if (status != FA_OK) return status;
  cJSON_DeleteItemFromObjectCaseSensitive(head, "groups");
  cJSON_AddItemToObject(head, "groups", groups);
  return FA_OK;
}

/* Returns 1 if not all that --require asks for was judged. */
static int require_now(const reading *r, fa_merged *merged) {
  if (!r->required) return FA_EXIT_PASSED;
  fa_require_put(&r->require, fa_merged_head(merged));
  if (!fa_require_unmet(&r->require)) return FA_EXIT_PASSED;
  fa_require_print(&r->require, stderr);
  return FA_EXIT_MISMATCH;
}

/* The page and the annotations need all cases at once. */
static fa_status write_from_tree(const fa_cli *cli, fa_merged *merged, fa_error *err) {
  cJSON *root = NULL;
  if (!cli->html && !cli->annotations) return FA_OK;
  fa_status status = fa_merged_tree(merged, &root, err);
  if (status == FA_OK && cli->annotations) status = fa_annotations_write(stdout, root, err);
  if (status == FA_OK && cli->html) status = fa_page_write(root, NULL, cli->html, err);
  cJSON_Delete(root);
  return status;
}

static fa_status write_outputs(const fa_cli *cli, fa_merged *merged, fa_error *err) {
  if (cli->no_times) fa_merged_zero_times(merged);
  fa_status status = write_from_tree(cli, merged, err);
  if (status == FA_OK && cli->junit) status = fa_merged_write_junit(merged, cli->junit, err);
  if (status == FA_OK && cli->score) status = fa_score_write(cli, merged, err);
  if (status == FA_OK && cli->merge) status = fa_merged_write(merged, cli->merge, err); /* changes the head */
  return status;
}

/* --compare A B: exit code 1 if a case fails in B alone. */
static int compare(const fa_cli *cli) {
  fa_error err = {""};
  cJSON *report[2] = {NULL, NULL}, *comparison = NULL;
  const char *const *path = (const char *const *)cli->words.v;
  fa_status status = FA_OK;
  int code = FA_EXIT_PASSED;
  if (cli->words.n != 2 || cli->merge || cli->junit || cli->score || cli->require || cli->annotations)
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
  if (cli->annotations && fa_annotations_check(cli->annotations, &err) != FA_OK)
    return fa_cli_fail(FA_ERR_INPUT, &err);
  int code = FA_EXIT_PASSED;
  reading r = {0};
  fa_merged *merged = NULL;
  fa_status status = read_reports(cli, &r, &merged, &err);
  if (status == FA_OK) say_contradictions(fa_merged_head(merged));
  if (status == FA_OK) status = find_causes(r.causes, merged, cli->program, &err);
  if (status == FA_OK) code = require_now(&r, merged);
  if (status == FA_OK && !cli->junit && !cli->merge && !cli->html && !cli->score) {
    fa_causes_print(stdout, fa_report_at(fa_merged_head(merged), "groups"), cli->verbose);
    if (fa_claims_matter(fa_merged_head(merged))) fa_claims_print(stdout, fa_merged_head(merged));
    print_rules(fa_merged_head(merged));
    print_counts(merged);
  }
  if (status == FA_OK) status = write_outputs(cli, merged, &err);
  fa_require_free(&r.require);
  fa_causes_free(r.causes);
  fa_merged_free(merged);
  return status == FA_OK ? code : fa_cli_fail(status, &err);
}
