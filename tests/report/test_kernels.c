/* Results counted by the kernel that computed them: in a run, in the report, read back from its file or from
 * the journal, and over several reports. */
#include "report/journal_line.h"
#include "report/json.h"
#include "report/kernels.h"
#include "report/text/line.h"
#include "tests/report/merged_trees.h"
#include "tests/support/check.h"

#include "cases/base/atomic_file.h"

#include <cjson/cJSON.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char path[64];

static void make(fa_result *r, const char *name, fa_state state, const char *kernel, const char *backward) {
  fa_result_init(r);
  r->state = state;
  r->name = strdup(name);
  r->case_line = strdup("{\"family\":\"flash\"}");
  snprintf(r->backend, sizeof r->backend, "cuda");
  snprintf(r->kernel, sizeof r->kernel, "%s", kernel);
  snprintf(r->backward_kernel, sizeof r->backward_kernel, "%s", backward);
}

/* The counts of a run of these cases, directly or through the journal's lines. */
static void fill_report(fa_report *report, bool by_journal) {
  static const struct {
    const char *name;
    fa_state state;
    bool waived;
    const char *kernel, *backward;
  } of[] = {{"a", FA_PASS, false, "hopper_forward<f16,64,causal>", "hopper_backward"},
            {"b", FA_PASS, false, "hopper_forward<bf16,128,none>", ""},
            {"c", FA_FAIL, false, "hopper_forward<f16,64,none,dropout>", "flash_backward"},
            {"d", FA_SKIP, false, "", ""},
            {"e", FA_CRASH, true, "flash_forward<f16,32,none>", ""},
            {"f", FA_ERROR, false, "", ""},
            {"g", FA_PASS, false, "all_in_one", "all_in_one"}};
  const fa_report_pair host[] = {{NULL, NULL}};
  const fa_report_head head = {"1", "abc", "fa-verify run", "cuda", "a chip", "", host};
  fa_error err = {""};
  REQUIRE(fa_report_init(report, &head, &err) == FA_OK);
  for (size_t i = 0; i < sizeof of / sizeof *of; ++i) {
    fa_result r;
    make(&r, of[i].name, of[i].state, of[i].kernel, of[i].backward);
    char *text = by_journal ? fa_report_journal_line(&r, (int64_t)i, 1) : NULL; /* which has no waivers yet */
    r.waived = of[i].waived;
    if (r.waived) snprintf(r.waiver, sizeof r.waiver, "known");
    if (by_journal) {
      fa_report_line line;
      REQUIRE(text && fa_report_line_parse(text, &line, &err) == FA_OK);
      line.brief->waived = r.waived;
      snprintf(line.brief->waiver, sizeof line.brief->waiver, "%s", r.waiver);
      REQUIRE(fa_report_add_line(report, &line, &err) == FA_OK);
      fa_report_line_free(&line);
      free(text);
    } else {
      REQUIRE(fa_report_add(report, &r, &err) == FA_OK);
    }
    fa_result_free(&r);
  }
}

static const char printed[] = "kernel all_in_one: passed:1 failed:0 skipped:0 error:0\n"
                              "kernel flash_backward: passed:0 failed:1 skipped:0 error:0\n"
                              "kernel flash_forward: passed:0 failed:0 skipped:0 error:0 waived:1\n"
                              "kernel hopper_backward: passed:1 failed:0 skipped:0 error:0\n"
                              "kernel hopper_forward: passed:2 failed:1 skipped:0 error:0\n"
                              "kernel no kernel named: passed:0 failed:0 skipped:1 error:1\n"
                              "tests:7 passed:3 failed:1 skipped:1 error:1 waived:1\n";

/* From the first line about kernels on. */
static void expect_printed(const fa_summary *s, const char *want, const char *what) {
  const fa_line_style style = {.verbosity = 1};
  char *text = NULL;
  size_t n = 0;
  FILE *out = open_memstream(&text, &n);
  REQUIRE(out);
  fa_line_summary(out, s, &style);
  fclose(out);
  const char *at = strstr(text, "kernel all");
  CHECK_MSG(at && strcmp(at, want) == 0, "%s: %s", what, text);
  free(text);
}

static cJSON *written(bool by_journal) {
  fa_report report;
  fa_error err = {""};
  cJSON *root = NULL;
  fa_summary back;
  fill_report(&report, by_journal);
  expect_printed(&report.summary, printed, by_journal ? "journal" : "run");
  REQUIRE(fa_report_write(&report, path, 1, &err) == FA_OK);
  fa_report_free(&report);
  REQUIRE(fa_report_load(path, &root, &err) == FA_OK);
  fa_report_read_summary(root, &back);
  expect_printed(&back, printed, "report");
  return root;
}

static double number(const cJSON *root, const char *kernel, const char *key) {
  const cJSON *row =
      cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(root, "kernels"), kernel);
  const cJSON *n = cJSON_GetObjectItemCaseSensitive(row, key);
  return cJSON_IsNumber(n) ? n->valuedouble : -1;
}

static void test_report(void) {
  cJSON *run = written(false), *resumed = written(true);
  CHECK(cJSON_Compare(run, resumed, 1));
  CHECK(number(run, "hopper_forward", "passed") == 2 && number(run, "hopper_forward", "failed") == 1);
  CHECK(number(run, "flash_forward", "waived") == 1 && number(run, "hopper_forward", "waived") == -1);
  const cJSON *first = cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(run, "cases"), 0);
  const cJSON *kernel = cJSON_GetObjectItemCaseSensitive(first, "kernel");
  CHECK(cJSON_IsString(kernel) && strcmp(kernel->valuestring, "hopper_forward<f16,64,causal>") == 0);
  cJSON_Delete(run);
  cJSON_Delete(resumed);
}

/* ---- made by hand ---- */

#define CASE(name, state, more)                                                                              \
  "{\"name\":\"" name "\",\"record\":\"" name "\",\"backend\":\"cuda\",\"state\":\"" state "\"" more "}"

static cJSON *by_hand(const char *cases, int n) {
  char text[2000];
  fa_error err = {""};
  cJSON *root = NULL;
  snprintf(text, sizeof text,
           "{\"fa_report\":1,\"summary\":{\"total\":%d,\"passed\":%d,\"failed\":0,\"skipped\":0,\"error\":0},"
           "\"kernels\":{\"made_up\":{\"passed\":99}},\"failures\":[],\"cases\":[%s]}",
           n, n, cases);
  REQUIRE(fa_report_parse(text, strlen(text), "by hand", &root, &err) == FA_OK);
  return root;
}

static cJSON *merged(cJSON *a, cJSON *b) {
  static const char *const names[] = {"a.json", "b.json"};
  cJSON *reports[] = {a, b}, *out = NULL;
  fa_error err = {""};
  REQUIRE(merge_trees(reports, names, 2, &out, &err) == FA_OK);
  cJSON_Delete(a);
  cJSON_Delete(b);
  return out;
}

static void test_merge(void) {
  /* Shards that overlap in "two"; the reports' own counts do not matter. */
  cJSON *all = merged(by_hand(CASE("one", "PASS", ",\"kernel\":\"k<1>\"") "," CASE(
                                  "two", "PASS", ",\"kernel\":\"k<2>\",\"backward_kernel\":\"kb\""),
                              2),
                      by_hand(CASE("two", "PASS", ",\"kernel\":\"k<2>\",\"backward_kernel\":\"kb\"") "," CASE(
                                  "three", "PASS", ",\"kernel\":\"other<2>\""),
                              2));
  CHECK(number(all, "k", "passed") == 2 && number(all, "kb", "passed") == 1);
  CHECK(number(all, "other", "passed") == 1 && number(all, "made_up", "passed") == -1);
  CHECK(cJSON_GetObjectItemCaseSensitive(all, "contradictions") == NULL);
  cJSON_Delete(all);
  /* An older version names no kernel: the results are still the same. */
  all = merged(by_hand(CASE("one", "PASS", ""), 1), by_hand(CASE("one", "PASS", ",\"kernel\":\"k<1>\""), 1));
  CHECK(cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(all, "cases")) == 1);
  CHECK(number(all, FA_NO_KERNEL, "passed") == 1);
  cJSON_Delete(all);
  /* Two kernels for one case: both count, and there is no contradiction. */
  all = merged(by_hand(CASE("one", "PASS", ",\"worst_ratio\":0.5,\"kernel\":\"k<1>\""), 1),
               by_hand(CASE("one", "PASS", ",\"worst_ratio\":0.75,\"kernel\":\"slow<1>\""), 1));
  CHECK(number(all, "k", "passed") == 1 && number(all, "slow", "passed") == 1);
  CHECK(cJSON_GetObjectItemCaseSensitive(all, "contradictions") == NULL);
  cJSON_Delete(all);
  all = merged(by_hand(CASE("one", "PASS", ",\"worst_ratio\":0.5,\"kernel\":\"k<1>\""), 1),
               by_hand(CASE("one", "PASS", ",\"worst_ratio\":0.75,\"kernel\":\"k<1>\""), 1));
  CHECK(number(all, "k", "passed") == 2);
  CHECK(cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(all, "contradictions")) == 1);
  cJSON_Delete(all);
}

/* Results in a report of version 0.1 are added to those of today, under today's names. */
static void test_old_names(void) {
  cJSON *all =
      merged(by_hand(CASE("one", "PASS", ",\"kernel\":\"kv_forward<f16,64,none,splits(2)>\"") "," CASE(
                         "two", "PASS",
                         ",\"kernel\":\"wide_forward<f32,72,none>\",\"backward_kernel\":\"wide_backward\""),
                     2),
             by_hand(CASE("three", "PASS", ",\"kernel\":\"cache_forward<f16,64,none>\""), 1));
  CHECK(number(all, "cache_forward", "passed") == 2 && number(all, "kv_forward", "passed") == -1);
  CHECK(number(all, "memeff_forward", "passed") == 1 && number(all, "memeff_backward", "passed") == 1);
  cJSON_Delete(all);
}

/* A program behind exec: may use any name. */
static void test_hostile_names(void) {
  fa_kernel_counts c = {0};
  fa_result r;
  for (int i = 0; i < 3 * FA_KERNEL_ROWS; ++i) {
    char name[128];
    memset(name, 'x', sizeof name);
    snprintf(name, sizeof name, "%c%d<", 'z' - i % 26, i);
    make(&r, "a", FA_PASS, name, "");
    fa_kernel_counts_add(&c, &r);
    fa_result_free(&r);
  }
  int64_t total = 0;
  for (int i = 0; i < c.n; ++i) {
    total += c.row[i].passed;
    CHECK(i == 0 || strcmp(c.row[i - 1].name, c.row[i].name) < 0);
  }
  CHECK(c.n == FA_KERNEL_ROWS && total == 3 * FA_KERNEL_ROWS);
  fa_kernel_counts_add_cases(&c, NULL);
  c = (fa_kernel_counts){0};
  make(&r, "a", FA_PASS, "", "");
  memset(r.kernel, 'y', sizeof r.kernel - 1);
  fa_kernel_counts_add(&c, &r);
  CHECK(c.n == 1 && strlen(c.row[0].name) == sizeof c.row[0].name - 1);
  fa_result_free(&r);
}

int main(void) {
  snprintf(path, sizeof path, "test_report_kernels.%d.json", (int)getpid());
  test_report();
  test_merge();
  test_old_names();
  test_hostile_names();
  remove(path);
  return check_done();
}
