/* The score of a report: its number by the formula that stands beside it, what is covered, refused and not claimed, the
 * accuracy map; and that nothing but the reports decides what it says. */
#include "report/json.h"
#include "report/merge/streamed.h"
#include "report/printed.h"
#include "report/score/document.h"
#include "report/score/speed.h"
#include "tests/support/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CHECK_STR(got, want) CHECK_MSG(strcmp(got, want) == 0, "%s, want %s", got, want)

/* ---- reports as text ---- */

#define HEAD                                                                                                 \
  "{\"fa_report\":1,\"tool\":{\"version\":\"1\",\"git\":\"\"},\"backend\":{\"name\":\"exec:k\",\"device\":"  \
  "\"\",\"driver\":\"\"},"                                                                                   \
  "\"summary\":{\"total\":0,\"passed\":0,\"failed\":0,\"skipped\":0,\"error\":0},\"failures\":[],"
#define CONTRACT                                                                                             \
  "\"contracts\":{\"exec:k\":{\"name\":\"k\",\"claims\":{\"limits\":{\"head_dim\":{\"max\":64}}},"           \
  "\"not_claimed\":{\"families\":[],\"dtypes\":[\"f32\"],\"features\":[\"window\"],\"passes\":["             \
  "\"backward\"],\"outputs\":[]}}},"
#define PASSED(name, words, ratio)                                                                           \
  "{\"name\":\"" name "\",\"state\":\"PASS\",\"backend\":\"exec:k\",\"record\":\"" name                      \
  "\",\"passes\":1,\"features\":\"" words "\",\"ratios\":{\"o\":" ratio "},\"rms\":{\"o\":0.5}}"
#define SKIPPED(name, words, reason)                                                                         \
  "{\"name\":\"" name "\",\"state\":\"SKIP\",\"backend\":\"exec:k\",\"record\":\"" name                      \
  "\",\"passes\":0,\"features\":\"" words "\",\"reason\":\"exec: " reason "\"}"
#define FAILED(name, words, more)                                                                            \
  "{\"name\":\"" name "\",\"state\":\"FAIL\",\"backend\":\"exec:k\",\"record\":\"" name                      \
  "\",\"passes\":1,\"features\":\"" words "\",\"ratios\":{\"o\":\"inf\"}" more "}"
#define REPORT(more, cases) HEAD CONTRACT more "\"cases\":[" cases "]}"

static fa_status add(void *cases, const fa_merged_case *c, fa_error *err) {
  return fa_score_cases_add(cases, c->entry, err);
}

/* The score of n reports. NULL: there is none, and err says why. */
static cJSON *score_of(const char *const *text, int n, fa_error *err) {
  static const char *const names[] = {"a.json", "b.json"};
  fa_merge_source source[2];
  fa_merged *merged = NULL;
  fa_score_cases cases;
  cJSON *score = NULL;
  for (int i = 0; i < n; ++i) source[i] = (fa_merge_source){names[i], text[i], strlen(text[i])};
  REQUIRE(fa_merge_open(source, n, NULL, NULL, &merged, err) == FA_OK);
  fa_score_cases_init(&cases, fa_report_at(fa_merged_head(merged), "contracts"));
  if (fa_merged_each(merged, add, &cases, err) == FA_OK)
    score = fa_score_document(&cases, fa_merged_head(merged), NULL);
  fa_score_cases_free(&cases);
  fa_merged_free(merged);
  return score;
}

static cJSON *score_of_one(const char *text) {
  fa_error err = {""};
  cJSON *score = score_of(&text, 1, &err);
  REQUIRE(score);
  char *printed = cJSON_Print(score); /* numbers that are kept as text become numbers */
  cJSON_Delete(score);
  score = cJSON_Parse(printed);
  cJSON_free(printed);
  REQUIRE(score);
  return score;
}

static double value(const cJSON *score, const char *key) {
  return fa_report_number(fa_report_at(score, "score"), key);
}

static const cJSON *named(const cJSON *list, const char *key, const char *name) {
  const cJSON *x;
  cJSON_ArrayForEach(x, list) if (strcmp(fa_report_string(x, key), name) == 0) return x;
  return NULL;
}

static bool has_caveat(const cJSON *score, const char *part) {
  const cJSON *x;
  cJSON_ArrayForEach(x, fa_report_at(score, "caveats")) if (strstr(x->valuestring, part)) return true;
  return false;
}

/* ---- the number ---- */

/* Rows: flash 2 of 4, f16 2 of 3, f32 0 of 1, causal 1 of 2, window 0 of 1, forward 2 of 4, o 2 of 2. */
#define MIXED                                                                                                \
  PASSED("a", "f16 flash", "0.5")                                                                            \
  "," PASSED("b", "f16 flash causal", "0.9") "," SKIPPED(                                                    \
      "c", "f32 flash window", "it has no f32") "," SKIPPED("d", "f16 flash causal", "not today")

static void the_number_is_the_mean_of_what_is_covered(void) {
  cJSON *score = score_of_one(REPORT("", MIXED));
  const double expected = (2. / 4 + 2. / 3 + 0 + 1. / 2 + 0 + 2. / 4 + 1) / 7;
  CHECK(fa_report_number(score, "fa_score") == FA_SCORE_VERSION);
  CHECK(fabs(value(score, "coverage") - expected) < 1e-5);
  CHECK(value(score, "verdict") == 1 && value(score, "value") == value(score, "coverage"));
  CHECK_STR(fa_report_string(fa_report_at(score, "score"), "over"), "selected");
  CHECK_STR(fa_report_string(fa_report_at(score, "verdict"), "result"), "passed");
  CHECK(has_caveat(score, "trusted") && has_caveat(score, "not claimed, not judged: dtypes: f32"));
  cJSON_Delete(score);
}

static void a_refusal_is_a_skip_inside_the_contract(void) {
  cJSON *score = score_of_one(REPORT("", MIXED "," SKIPPED("e", "f16 flash", "head_dim 96 is more than 64")));
  const cJSON *coverage = fa_report_at(score, "coverage");
  CHECK(fa_report_number(fa_report_at(coverage, "cases"), "refused") == 1);
  const cJSON *causal = named(fa_report_at(coverage, "features"), "name", "causal");
  REQUIRE(causal);
  CHECK(fa_report_number(causal, "selected") == 2 && fa_report_number(causal, "refused") == 1);
  CHECK_STR(fa_report_string(fa_report_at(causal, "reasons")->child, "text"), "exec: not today");
  cJSON_Delete(score);
}

static void a_case_that_proves_nothing_counts_for_nothing(void) {
  cJSON *score = score_of_one(
      REPORT("", PASSED("a", "f16 flash",
                        "0.5") ",{\"name\":\"b\",\"state\":\"SKIP\",\"backend\":\"exec:k\",\"features\":"
                               "\"f16 flash causal\",\"reason\":\"" FA_REASON_VACUOUS "\"}"));
  const cJSON *cases = fa_report_at(fa_report_at(score, "coverage"), "cases");
  CHECK(value(score, "value") == 1);
  CHECK(fa_report_number(cases, "selected") == 1 && fa_report_number(cases, "vacuous") == 1);
  CHECK(fa_report_number(cases, "skipped") == 0 && fa_report_number(cases, "refused") == 0);
  cJSON_Delete(score);
}

static void anything_that_failed_makes_it_0(void) {
  cJSON *score = score_of_one(REPORT("", MIXED "," FAILED("f", "f16 flash", "")));
  CHECK(value(score, "value") == 0 && value(score, "verdict") == 0 && value(score, "coverage") > 0);
  CHECK_STR(fa_report_string(fa_report_at(score, "score"), "why_zero"), "1 of 3 judged cases failed");
  cJSON_Delete(score);
  score = score_of_one(REPORT("", FAILED("f", "f16 flash", ",\"waived\":true")));
  CHECK(value(score, "value") == 0 && has_caveat(score, "waived"));
  cJSON_Delete(score);
  score = score_of_one(REPORT("", SKIPPED("c", "f32 flash", "it has no f32")));
  CHECK_STR(fa_report_string(fa_report_at(score, "score"), "why_zero"), "nothing was judged");
  cJSON_Delete(score);
}

#define REQUIRE_OF(met, judged)                                                                              \
  "\"require\":{\"wanted\":{\"features\":[\"causal\"]},\"met\":" met                                         \
  ",\"items\":[{\"what\":\"features\",\"wanted\":\"causal\",\"cases\":2,\"judged\":" judged ",\"met\":" met  \
  ",\"reason\":\"\"}]},"

static void what_is_required_by_name_is_all_that_counts(void) {
  cJSON *score = score_of_one(REPORT(REQUIRE_OF("true", "1"), MIXED));
  CHECK(value(score, "value") == 0.5);
  CHECK_STR(fa_report_string(fa_report_at(score, "score"), "over"), "required");
  cJSON_Delete(score);
  score = score_of_one(REPORT(REQUIRE_OF("false", "0"), MIXED));
  CHECK(value(score, "value") == 0);
  CHECK_STR(fa_report_string(fa_report_at(score, "verdict"), "result"), "not judged");
  cJSON_Delete(score);
}

/* ---- the map ---- */

static void errors_stand_by_output_and_type(void) {
  cJSON *score = score_of_one(
      REPORT("", PASSED("a", "f16 flash", "0.5") "," PASSED("b", "f16 flash causal", "0.9") "," PASSED(
                     "c", "f16 flash causal", "0.7") "," FAILED("d", "f32 flash", "")));
  const cJSON *half = named(fa_report_at(score, "accuracy"), "dtype", "f16"),
              *full = named(fa_report_at(score, "accuracy"), "dtype", "f32");
  REQUIRE(half && full);
  CHECK(fa_report_number(fa_report_at(half, "ratio"), "median") == 0.7);
  CHECK(fa_report_number(fa_report_at(half, "ratio"), "worst") == 0.9);
  CHECK(fa_report_number(fa_report_at(half, "rms"), "worst") == 0.5);
  CHECK_STR(fa_report_string(fa_report_at(half, "worst")->child, "case"), "b");
  const cJSON *plain = named(fa_report_at(half, "by_feature"), "feature", "plain");
  REQUIRE(plain);
  CHECK(fa_report_number(plain, "ratio") == 0.5);
  CHECK_STR(fa_report_string(fa_report_at(full, "ratio"), "worst"), "inf");
  cJSON_Delete(score);
}

/* ---- times ---- */

static const char race[] =
    "{\"fa_bench\":1,\"backend\":{\"name\":\"exec:k\"},\"bench\":{\"untrusted\":true,\"without\":[],"
    "\"cases\":["
    "{\"name\":\"a\",\"passes\":\"forward\",\"participants\":["
    "{\"role\":\"candidate\",\"backend\":\"exec:k\",\"time\":{\"median_us\":200}},"
    "{\"role\":\"nothing\",\"backend\":\"nothing\",\"time\":{\"median_us\":1}},"
    "{\"role\":\"rival\",\"backend\":\"cuda\",\"time\":{\"median_us\":100}}]},"
    "{\"name\":\"b\",\"passes\":\"forward\",\"participants\":["
    "{\"role\":\"candidate\",\"backend\":\"exec:k\",\"no_speed\":{\"by\":\"chain\",\"text\":\"wrong\"}}]}]}}";

static void times_stand_beside_rivals(void) {
  cJSON *bench = cJSON_Parse(race);
  REQUIRE(bench);
  cJSON *speed = fa_score_speed_json(bench);
  const cJSON *a = named(fa_report_at(speed, "cases"), "name", "a"),
              *b = named(fa_report_at(speed, "cases"), "name", "b");
  REQUIRE(a && b);
  const cJSON *rival = fa_report_at(a, "rivals")->child;
  REQUIRE(rival && !rival->next);
  CHECK_STR(fa_report_string(rival, "backend"), "cuda");
  CHECK_STR(fa_report_at(rival, "by_candidate")->valuestring, "0.5");
  CHECK(fa_report_at(fa_report_at(b, "candidate"), "no_speed") &&
        !fa_report_at(fa_report_at(b, "candidate"), "time"));
  CHECK(fa_report_number(speed, "timed") == 1 && fa_report_number(speed, "no_speed") == 1);
  cJSON_Delete(speed);
  cJSON_Delete(bench);
  speed = fa_score_speed_json(NULL);
  CHECK(cJSON_IsNull(speed));
  cJSON_Delete(speed);
}

/* ---- nothing else decides ---- */

static char *text_of(const char *const *text, int n) {
  fa_error err = {""};
  cJSON *score = score_of(text, n, &err);
  REQUIRE(score);
  char *printed = cJSON_Print(score);
  cJSON_Delete(score);
  return printed;
}

static void the_order_of_reports_does_not_matter(void) {
  const char *const two[] = {REPORT("", MIXED), REPORT("", PASSED("e", "f16 flash", "0.3"))};
  const char *const turned[] = {two[1], two[0]};
  char *a = text_of(two, 2), *b = text_of(turned, 2), *c = text_of(two, 2);
  CHECK_STR(a, b);
  CHECK_STR(a, c);
  cJSON_free(a);
  cJSON_free(b);
  cJSON_free(c);
}

#define RULES_OF(left_out)                                                                                   \
  "\"untrusted\":{\"contract_sha256\":\"x\",\"commitment\":\"" left_out                                      \
  "\",\"layers\":{\"in_force\":[\"seeds\"],\"left_out\":[\"" left_out "\"]},\"claims\":{\"untested\":[]}},"
#define CLAIMS_LESS                                                                                          \
  "\"contracts\":{\"exec:k\":{\"name\":\"k\",\"claims\":{},\"not_claimed\":{\"dtypes\":[\"f32\",\"bf16\"],"  \
  "\"features\":[\"window\",\"paged\"]}}},"

/* Of several runs the score says what holds for the weakest, in whichever order they are given. */
static void a_score_is_no_better_than_its_weakest_report(void) {
  const char *const two[] = {REPORT(RULES_OF("network"), PASSED("a", "f16 flash", "0.3")),
                             HEAD CLAIMS_LESS "\"cases\":[" PASSED("e", "f16 flash", "0.3") "]}"};
  const char *const turned[] = {two[1], two[0]}, *const other =
                                                     REPORT(RULES_OF("limits"), PASSED("f", "f16", "0.3"));
  const char *const layers[] = {two[0], other};
  fa_error err = {""};
  cJSON *score = score_of(two, 2, &err);
  REQUIRE(score);
  CHECK(has_caveat(score, "in b.json the kernel was trusted") &&
        has_caveat(score, "the reports differ (trusted)"));
  CHECK(has_caveat(score, "not claimed, not judged: features: window paged"));
  cJSON_Delete(score);
  score = score_of(turned, 2, &err);
  REQUIRE(score);
  CHECK(has_caveat(score, "in a.json the kernel was trusted"));
  CHECK(has_caveat(score, "not claimed, not judged: features: window paged"));
  cJSON_Delete(score);
  score = score_of(layers, 2, &err);
  REQUIRE(score);
  CHECK(has_caveat(score, "the layer network was left out") &&
        has_caveat(score, "the layer limits was left out"));
  CHECK(has_caveat(score, "the reports differ (layers)") && !has_caveat(score, "trusted:"));
  cJSON_Delete(score);
}

static void a_score_is_of_one_kernel(void) {
  const char *two =
      REPORT("", PASSED("a", "f16 flash", "0.5") ",{\"name\":\"b\",\"state\":\"PASS\",\"backend\":\"host\"}");
  fa_error err = {""};
  CHECK(score_of(&two, 1, &err) == NULL);
  CHECK(strstr(err.text, "exec:k and host"));
}

int main(void) {
  the_number_is_the_mean_of_what_is_covered();
  a_refusal_is_a_skip_inside_the_contract();
  a_case_that_proves_nothing_counts_for_nothing();
  anything_that_failed_makes_it_0();
  what_is_required_by_name_is_all_that_counts();
  errors_stand_by_output_and_type();
  times_stand_beside_rivals();
  the_order_of_reports_does_not_matter();
  a_score_is_no_better_than_its_weakest_report();
  a_score_is_of_one_kernel();
  return check_done();
}
