/* "untrusted" of merged reports: no more is said to have been in force than in the weakest part. And in JUnit. */
#include "gpu/wall/layers.h"
#include "report/json.h"
#include "report/untrusted/facts.h"
#include "report/untrusted/parts.h"
#include "tests/report/merged_trees.h"
#include "tests/report/written.h"
#include "tests/support/check.h"

#include <cjson/cJSON.h>

#include <stdlib.h>
#include <string.h>

#define LAYERS(in_force, left_out) "\"layers\":{\"in_force\":[" in_force "],\"left_out\":[" left_out "]},"
#define ALL LAYERS("\"network\",\"contract\",\"seeds\",\"bounds\"", "")
#define NO_NETWORK LAYERS("\"contract\",\"seeds\",\"bounds\"", "\"network\"")
#define NO_CONTRACT LAYERS("\"network\",\"seeds\",\"bounds\"", "\"contract\"")
#define CLAIMS(tested, untested)                                                                             \
  "\"claims\":{\"tested\":[" tested "],\"untested\":[" untested                                              \
  "],\"not_made\":[\"paged\"],\"not_judged\":\"\",\"cases_outside\":1}"
#define RULES(contract, secret, layers, claims)                                                              \
  "\"contract_sha256\":\"" contract "\",\"commitment\":\"of " secret "\",\"secret\":\"" secret               \
  "\",\"cases_sha256\":\"c\",\"arithmetic\":{\"name\":\"flash\",\"ignored\":{}},\"cases\":3,\"hidden\":2,"   \
  "\"traps\":{\"data\":4,\"process\":1}," layers claims

/* A report with this "untrusted", of one case; rules NULL: of a kernel that was trusted. */
static cJSON *report_of(const char *name, const char *rules) {
  char text[4096];
  snprintf(
      text, sizeof text,
      "{\"fa_report\":1,\"backend\":{\"name\":\"exec:k\",\"device\":\"\",\"driver\":\"\"},\"summary\":{"
      "\"total\":1,\"passed\":1,\"failed\":0,\"skipped\":0,\"error\":0},%s%s%s\"failures\":[],\"cases\":[{"
      "\"name\":\"%s\",\"state\":\"PASS\",\"backend\":\"exec:k\",\"record\":\"%s\",\"passes\":1}]}",
      rules ? "\"untrusted\":{" : "", rules ? rules : "", rules ? "}," : "", name, name);
  cJSON *root = cJSON_Parse(text);
  REQUIRE(root);
  return root;
}

static cJSON *merge(cJSON *a, cJSON *b) {
  static const char *const paths[] = {"a.json", "b.json"};
  cJSON *reports[] = {a, b}, *merged = NULL;
  fa_error err = {""};
  REQUIRE(merge_trees(reports, paths, 2, &merged, &err) == FA_OK);
  cJSON_Delete(a);
  cJSON_Delete(b);
  return merged;
}

static const cJSON *at(const cJSON *o, const char *key) {
  return cJSON_GetObjectItemCaseSensitive(o, key);
}

/* Compares what stands at a path such as "claims.untested" of "untrusted" with JSON text; "": nothing does. */
static void expect_at(int line, const cJSON *merged, const char *path, const char *want) {
  const cJSON *o = at(merged, "untrusted");
  char copy[80];
  snprintf(copy, sizeof copy, "%s", path);
  for (char *key = strtok(copy, "."); key; key = strtok(NULL, ".")) o = at(o, key);
  char *got = o ? cJSON_PrintUnformatted(o) : NULL;
  CHECK_MSG(strcmp(got ? got : "", want) == 0, "line %d: %s is %s, not %s", line, path, got ? got : "missing",
            want);
  cJSON_free(got);
}
#define EXPECT(merged, path, want) expect_at(__LINE__, merged, path, want)

static void expect_part(const cJSON *merged, int i, const char *report, const char *secret) {
  const cJSON *part = cJSON_GetArrayItem(at(at(merged, "untrusted"), "parts"), i);
  const char *has = cJSON_GetStringValue(at(part, "secret"));
  REQUIRE(part && cJSON_IsString(at(part, "report")));
  CHECK_MSG(strcmp(at(part, "report")->valuestring, report) == 0, "%s", at(part, "report")->valuestring);
  CHECK_MSG(strcmp(has ? has : "trusted", secret) == 0, "%s", has);
}

#define A RULES("x", "s1", ALL, CLAIMS("\"flash\",\"causal\"", "\"gqa\""))

static void shards_are_one_run(void) {
  cJSON *merged = merge(report_of("one", A),
                        report_of("two", RULES("x", "s1", ALL, CLAIMS("\"flash\",\"gqa\"", "\"causal\""))));
  EXPECT(merged, "secret", "\"s1\"");
  EXPECT(merged, "commitment", "\"of s1\"");
  EXPECT(merged, "contract_sha256", "\"x\"");
  EXPECT(merged, "layers", "{\"in_force\":[\"network\",\"contract\",\"seeds\",\"bounds\"],\"left_out\":[]}");
  EXPECT(merged, "differ", "[]");
  EXPECT(merged, "cases", "6");
  EXPECT(merged, "hidden", "4");
  EXPECT(merged, "traps", "{\"data\":8,\"process\":2}");
  EXPECT(merged, "claims.untested", "[]"); /* each has tested what the other has not */
  EXPECT(merged, "claims.tested", "[\"flash\",\"causal\",\"gqa\"]");
  EXPECT(merged, "claims.cases_outside", "2");
  CHECK(fa_untrusted_failing_claims(merged) && cJSON_GetArraySize(fa_untrusted_failing_claims(merged)) == 0);
  cJSON_Delete(merged);
}

static void a_layer_counts_if_every_part_has_it(void) {
  cJSON *merged =
      merge(report_of("one", A), report_of("two", RULES("x", "s2", NO_NETWORK, CLAIMS("\"flash\"", ""))));
  EXPECT(merged, "layers", "{\"in_force\":[\"contract\",\"seeds\",\"bounds\"],\"left_out\":[\"network\"]}");
  EXPECT(merged, "differ", "[\"layers\"]");
  EXPECT(merged, "secret", ""); /* each has its own */
  EXPECT(merged, "commitment", "");
  EXPECT(merged, "claims.untested", "[\"gqa\"]");
  expect_part(merged, 0, "a.json", "s1");
  expect_part(merged, 1, "b.json", "s2");
  cJSON_Delete(merged);
}

/* What the candidate did not find, and what it might use, are rules too: one part without them is another run. */
static void limits_are_rules(void) {
  static const char limits[] = "\"hide\":[\"/lib\"],\"memory_limit_bytes\":64,", rules[] = A;
  char limited[2048];
  snprintf(limited, sizeof limited, "%s%s", limits, rules);
  cJSON *merged = merge(report_of("one", limited), report_of("two", limited));
  EXPECT(merged, "hide", "[\"/lib\"]");
  EXPECT(merged, "memory_limit_bytes", "64");
  EXPECT(merged, "differ", "[]");
  cJSON_Delete(merged);
  merged = merge(report_of("one", limited), report_of("two", rules));
  EXPECT(merged, "hide", "");
  EXPECT(merged, "memory_limit_bytes", "");
  EXPECT(merged, "differ", "[\"hide\",\"memory_limit_bytes\"]");
  cJSON_Delete(merged);
}

/* What one contract has tested proves nothing of another. */
static void other_contracts_have_their_own_claims(void) {
  cJSON *merged = merge(report_of("one", A),
                        report_of("two", RULES("y", "s2", ALL, CLAIMS("\"flash\",\"gqa\"", "\"causal\""))));
  EXPECT(merged, "contract_sha256", "");
  EXPECT(merged, "differ", "[\"contract\"]");
  EXPECT(merged, "claims.untested", "[\"gqa\",\"causal\"]");
  EXPECT(merged, "claims.tested", "[\"flash\"]");
  cJSON_Delete(merged);
}

static void one_trusted_part_leaves_what_trusted_runs_have(void) {
  cJSON *merged = merge(report_of("one", A), report_of("two", NULL));
  EXPECT(merged, "layers", "{\"in_force\":[\"bounds\"],\"left_out\":[\"network\",\"contract\",\"seeds\"]}");
  EXPECT(merged, "differ", "[\"trusted\"]");
  EXPECT(merged, "contract_sha256", "");
  expect_part(merged, 1, "b.json", "trusted");
  fa_untrusted_fact fact[FA_UNTRUSTED_FACTS];
  const int n = fa_untrusted_facts(merged, fact);
  bool named = false;
  for (int i = 0; i < n; ++i)
    named |= strcmp(fact[i].name, "trusted") == 0 && !strcmp(fact[i].text, "b.json");
  CHECK(named);
  /* The other way round, and merged once more. */
  cJSON *again = merge(merge(report_of("three", NULL), report_of("one", A)), report_of("four", A));
  EXPECT(again, "differ", "[\"trusted\"]");
  CHECK(cJSON_GetArraySize(at(at(again, "untrusted"), "parts")) == 3);
  cJSON_Delete(merged);
  cJSON_Delete(again);
}

static void trusted_reports_have_no_such_key(void) {
  cJSON *merged = merge(report_of("one", NULL), report_of("two", NULL));
  CHECK(at(merged, "untrusted") == NULL);
  cJSON_Delete(merged);
}

static void results_that_are_there_twice_are_not_counted(void) {
  cJSON *merged = merge(report_of("one", A), report_of("one", A));
  EXPECT(merged, "cases", "");
  EXPECT(merged, "traps", "");
  EXPECT(merged, "claims.untested", "[\"gqa\"]");
  cJSON_Delete(merged);
}

static void a_trusted_run_has_these_layers(void) {
  fa_layer_set set = 0;
  for (int i = 0; fa_untrusted_always[i]; ++i)
    for (int l = 0; l < FA_N_LAYERS; ++l)
      if (strcmp(fa_layers[l].name, fa_untrusted_always[i]) == 0) set |= 1u << l;
  CHECK(set == FA_TRUSTED_LAYERS);
}

/* ---- JUnit, the page ---- */

static void junit_fails_where_the_run_does(void) {
  static const char testcase[] =
      "<testcase classname=\"untested claim\" name=\"gqa\" time=\"0.000\"><failure ";
  cJSON *held = report_of("one", A),
        *not_held = report_of("one", RULES("x", "s1", NO_CONTRACT, CLAIMS("", "\"gqa\""))),
        *trusted = report_of("one", NULL);
  cJSON *merged = merge(report_of("one", A), report_of("two", NULL));
  char *held_text = written(held, false), *not_held_text = written(not_held, false),
       *trusted_text = written(trusted, false), *merged_text = written(merged, false),
       *page = written(not_held, true);
  CHECK(strstr(held_text, testcase) && strstr(held_text, "tests=\"2\" failures=\"1\""));
  CHECK(strstr(held_text, "<property name=\"untrusted.commitment\" value=\"of s1\"/>"));
  CHECK(!strstr(held_text, "untrusted.layers_left_out"));
  CHECK(!strstr(not_held_text, testcase) && strstr(not_held_text, "tests=\"1\" failures=\"0\""));
  CHECK(strstr(not_held_text, "<property name=\"untrusted.layers_left_out\" value=\"contract\"/>"));
  CHECK(strstr(not_held_text, "<property name=\"untrusted.untested\" value=\"gqa\"/>"));
  CHECK(!strstr(trusted_text, "untrusted"));
  CHECK(strstr(merged_text, testcase) &&
        strstr(merged_text, "<property name=\"untrusted.trusted\" value=\"b.json\"/>"));
  CHECK(strstr(page, "<dt>LAYERS LEFT OUT, and what they keep off is not kept off</dt><dd>contract</dd>"));
  free(held_text);
  free(not_held_text);
  free(trusted_text);
  free(merged_text);
  free(page);
  cJSON_Delete(held);
  cJSON_Delete(not_held);
  cJSON_Delete(trusted);
  cJSON_Delete(merged);
}

int main(void) {
  shards_are_one_run();
  a_layer_counts_if_every_part_has_it();
  limits_are_rules();
  other_contracts_have_their_own_claims();
  one_trusted_part_leaves_what_trusted_runs_have();
  trusted_reports_have_no_such_key();
  results_that_are_there_twice_are_not_counted();
  a_trusted_run_has_these_layers();
  junit_fails_where_the_run_does();
  return check_done();
}
