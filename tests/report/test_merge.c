/* Merging reports: a result that is in several of them is once in the merged one, unless they differ. */
#include "report/json.h"
#include "tests/report/merged_trees.h"
#include "tests/support/check.h"

#include <cjson/cJSON.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Adds one case: "NAME=STATE:ratio", then words: seq=N (of the recipe), s=seconds. */
static void add_result(fa_report *report, const char *text) {
  fa_result r;
  char name[32], state[32], recipe[128];
  double ratio = 0, seconds = 1;
  int n = 4;
  fa_error err;
  REQUIRE(sscanf(text, "%31[^=]=%31[^:]:%lf seq=%d s=%lf", name, state, &ratio, &n, &seconds) >= 3);
  snprintf(recipe, sizeof recipe, "{\"name\":\"%s\",\"family\":\"flash\",\"seqlen_q\":%d}", name, n);
  fa_result_init(&r);
  REQUIRE(fa_state_from_name(state, &r.state));
  r.name = strdup(name);
  r.case_line = strcmp(name, "old") == 0 ? NULL : strdup(recipe);
  r.worst_ratio = ratio;
  r.seconds = seconds;
  snprintf(r.backend, sizeof r.backend, "host");
  if (r.state == FA_SKIP) snprintf(r.reason, sizeof r.reason, "no kernel");
  r.backward_left_out = ratio == 0.5;
  r.malformed = r.state == FA_ERROR;
  REQUIRE(fa_report_add(report, &r, &err) == FA_OK);
  fa_result_free(&r);
}

/* results: separated by commas. Returns the report as read back from its file. */
static cJSON *report_of(const char *results, const char *device, double seconds) {
  const fa_report_pair host[] = {{NULL, NULL}};
  const fa_report_head head = {"1", "abc", "fa-verify run", "host", device, "", host};
  const char *path = "test_report_merge.json";
  char copy[1024];
  fa_report report;
  fa_error err = {""};
  cJSON *root = NULL;
  REQUIRE(fa_report_init(&report, &head, &err) == FA_OK);
  snprintf(copy, sizeof copy, "%s", results);
  for (char *word = strtok(copy, ","); word; word = strtok(NULL, ",")) add_result(&report, word);
  REQUIRE(fa_report_write(&report, path, seconds, &err) == FA_OK);
  fa_report_free(&report);
  REQUIRE(fa_report_load(path, &root, &err) == FA_OK);
  remove(path);
  return root;
}

static cJSON *merge(cJSON *const *reports, int n) {
  static const char *const paths[] = {"a.json", "b.json", "c.json"};
  fa_error err = {""};
  cJSON *merged = NULL;
  const fa_status status = merge_trees(reports, paths, n, &merged, &err);
  CHECK_MSG(status == FA_OK, "%s", err.text);
  REQUIRE(status == FA_OK);
  for (int i = 0; i < n; ++i) cJSON_Delete(reports[i]);
  return merged;
}

static const cJSON *at(const cJSON *o, const char *key) {
  return cJSON_GetObjectItemCaseSensitive(o, key);
}

/* "one=PASS two=FAIL" of cases or failures. */
static void expect_list(const cJSON *merged, const char *key, const char *want) {
  char got[512] = "";
  const cJSON *entry;
  cJSON_ArrayForEach(entry, at(merged, key))
      snprintf(got + strlen(got), sizeof got - strlen(got), "%s%s=%s", got[0] ? " " : "",
               at(entry, "name")->valuestring, at(entry, "state")->valuestring);
  CHECK_MSG(strcmp(got, want) == 0, "%s: \"%s\", not \"%s\"", key, got, want);
}

static void expect_count(const cJSON *merged, const char *key, double want) {
  const cJSON *n = at(at(merged, "summary"), key);
  CHECK_MSG(cJSON_IsNumber(n) && n->valuedouble == want, "%s: %g, not %g", key, n ? n->valuedouble : -1,
            want);
}

static void test_overlap(void) {
  cJSON *reports[] = {
      report_of("one=PASS:0.25 seq=4 s=1,two=FAIL:2 seq=4 s=1,three=SKIP:0,four=PASS:0.5,wrong=ERROR:0",
                "CPU", 2),
      report_of(
          "two=FAIL:2 seq=4 s=7,three=SKIP:0 seq=4 s=9,four=PASS:0.5,five=FAIL:3,six=SKIP:0,wrong=ERROR:0",
          "CPU", 3)};
  cJSON *merged = merge(reports, 2);
  expect_list(merged, "cases", "one=PASS two=FAIL three=SKIP four=PASS wrong=ERROR five=FAIL six=SKIP");
  expect_list(merged, "failures", "two=FAIL wrong=ERROR five=FAIL");
  expect_count(merged, "total", 7);
  expect_count(merged, "passed", 2);
  expect_count(merged, "failed", 2);
  expect_count(merged, "skipped", 2);
  expect_count(merged, "error", 1);
  expect_count(merged, "malformed", 1);
  expect_count(merged, "backward_left_out", 1);
  CHECK(at(at(at(merged, "summary"), "skip_reasons"), "no kernel")->valuedouble == 2);
  CHECK(at(merged, "seconds")->valuedouble == 5 && at(merged, "contradictions") == NULL);
  /* The time of the first one stays. */
  CHECK(at(cJSON_GetArrayItem(at(merged, "cases"), 1), "seconds")->valuedouble == 1);
  cJSON_Delete(merged);
}

static void expect_contradiction(const cJSON *merged, int i, const char *name, const char *first,
                                 const char *second) {
  const cJSON *c = cJSON_GetArrayItem(at(merged, "contradictions"), i), *r = at(c, "results");
  char got[200];
  REQUIRE(c && cJSON_GetArraySize(r) == 2);
  CHECK(strcmp(at(c, "name")->valuestring, name) == 0 && strcmp(at(c, "backend")->valuestring, "host") == 0);
  for (int k = 0; k < 2; ++k) {
    const cJSON *side = cJSON_GetArrayItem(r, k);
    snprintf(got, sizeof got, "%s %s %g", at(side, "report")->valuestring, at(side, "state")->valuestring,
             at(side, "worst_ratio")->valuedouble);
    CHECK_MSG(strcmp(got, k ? second : first) == 0, "%s", got);
  }
}

static void test_contradictions(void) {
  cJSON *reports[] = {report_of("one=PASS:0.25,two=PASS:0.75,three=PASS:0.125", "CPU", 1),
                      report_of("one=FAIL:4,two=PASS:0.875,three=PASS:0.125", "CPU", 1),
                      report_of("one=PASS:0.25,one=PASS:0.25", "CPU", 1)};
  cJSON *merged = merge(reports, 3);
  expect_list(merged, "cases", "one=PASS two=PASS three=PASS one=FAIL two=PASS one=PASS");
  expect_list(merged, "failures", "one=FAIL");
  expect_count(merged, "total", 6); /* the third report shares its first result with a */
  expect_count(merged, "passed", 5);
  expect_count(merged, "failed", 1);
  CHECK(cJSON_GetArraySize(at(merged, "contradictions")) == 2);
  expect_contradiction(merged, 0, "one", "a.json PASS 0.25", "b.json FAIL 4");
  expect_contradiction(merged, 1, "two", "a.json PASS 0.75", "b.json PASS 0.875");
  cJSON_Delete(merged);
}

/* Results that only look the same. */
static void test_different(void) {
  cJSON *recipes[] = {report_of("one=PASS:0.25 seq=4", "CPU", 1), report_of("one=PASS:0.25 seq=5", "CPU", 1)};
  cJSON *merged = merge(recipes, 2);
  expect_count(merged, "total", 2);
  CHECK(at(merged, "contradictions") == NULL);
  cJSON_Delete(merged);
  cJSON *devices[] = {report_of("one=PASS:0.25", "a chip", 1), report_of("one=FAIL:3", "another chip", 1)};
  merged = merge(devices, 2);
  expect_count(merged, "total", 2);
  CHECK(at(merged, "contradictions") == NULL);
  cJSON_Delete(merged);
  cJSON *twice[] = {report_of("one=PASS:0.25,one=PASS:0.25", "CPU", 1),
                    report_of("one=PASS:0.25,one=PASS:0.25", "CPU", 1)};
  merged = merge(twice, 2);
  expect_count(merged, "total", 2);
  cJSON_Delete(merged);
  cJSON *old[] = {report_of("old=PASS:0.25,old=SKIP:0", "CPU", 1),
                  report_of("old=PASS:0.25,old=SKIP:0", "CPU", 1)};
  merged = merge(old, 2);
  expect_count(merged, "total", 4);
  expect_count(merged, "skipped", 2);
  cJSON_Delete(merged);
}

static cJSON *covered(const char *results, double n) {
  cJSON *root = report_of(results, "CPU", 1), *coverage = cJSON_AddObjectToObject(root, "coverage");
  cJSON_AddNumberToObject(coverage, "cases", n);
  cJSON_AddNumberToObject(cJSON_AddObjectToObject(coverage, "lengths"), "0", n / 2);
  return root;
}

static void test_coverage(void) {
  cJSON *apart[] = {covered("one=PASS:0.25", 4), covered("two=PASS:0.25", 6)};
  cJSON *merged = merge(apart, 2);
  CHECK(at(at(merged, "coverage"), "cases")->valuedouble == 10);
  CHECK(at(at(at(merged, "coverage"), "lengths"), "0")->valuedouble == 5);
  cJSON_Delete(merged);
  cJSON *overlapping[] = {covered("one=PASS:0.25", 4), covered("one=PASS:0.25", 6)};
  merged = merge(overlapping, 2);
  CHECK(at(merged, "coverage") == NULL); /* what was counted twice is unknown */
  cJSON_Delete(merged);
}

int main(void) {
  test_overlap();
  test_contradictions();
  test_different();
  test_coverage();
  return check_done();
}
