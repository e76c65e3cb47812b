/* Groups of failures in reports: the same from results as they come and from the report read back; the shrunk case is the
 * smallest; JUnit names the group. And the shape, which they rest on, says all of a case that it should. */
#include "fuzz/generate/draw.h"
#include "report/causes/collect.h"
#include "report/causes/shape.h"
#include "report/json.h"
#include "tests/report/planted_causes.h"
#include "tests/support/check.h"

#include <cjson/cJSON.h>

#include <math.h>
#include <string.h>

static const char path[] = "test_causes_report.json";

static const cJSON *at(const cJSON *o, const char *key) {
  return cJSON_GetObjectItemCaseSensitive(o, key);
}

static bool cause(const planted_case *c, fa_result *r) {
  if (c->bf16 && c->chance < 40) r->state = FA_ERROR; /* among the report's failures, but in no group */
  if (!c->alibi || !c->softcap || r->state == FA_ERROR) return false;
  planted_wrong(r, c->backward ? FA_T_DQ : FA_T_O);
  planted_explained(r, "alibi_missing");
  r->waived = c->chance > 950;
  if (r->waived) snprintf(r->waiver, sizeof r->waiver, "known");
  return true;
}

static const planted_run run = {.n = 800, .cause = cause};

/* Adds the results to a report and its groups; shrink: failure k has a shrunk case. */
static void write_report(int shrink) {
  static fa_result r;
  const fa_report_pair host[] = {{NULL, NULL}};
  const fa_report_head head = {"1", "abc", "fa-verify run", "made-up", "", "", host};
  fa_causes *causes = fa_causes_make();
  fa_report report;
  cJSON *groups;
  fa_error err;
  REQUIRE(causes && fa_report_init(&report, &head, &err) == FA_OK);
  for (int i = 0; i < run.n; ++i) {
    planted_result(&run, i, &r);
    REQUIRE(fa_report_add(&report, &r, &err) == FA_OK);
    const cJSON *last = fa_state_is_failure(r.state) ? report.failures->child->prev : NULL;
    REQUIRE(fa_causes_note(causes, &r, last, &err) == FA_OK);
    fa_result_free(&r);
  }
  if (shrink >= 0) {
    cJSON *shrunk = cJSON_AddObjectToObject(cJSON_GetArrayItem(report.failures, shrink), "shrunk");
    cJSON_AddItemToObject(shrunk, "case", cJSON_Parse("{\"family\":\"flash\",\"seqlen_q\":2048}"));
  }
  REQUIRE(fa_causes_conclude(causes, report.failures, path, "fa-verify", &groups, &err) == FA_OK);
  cJSON_AddItemToObject(report.root, "groups", groups);
  REQUIRE(fa_report_write(&report, path, 1, &err) == FA_OK);
  fa_causes_free(causes);
  fa_report_free(&report);
}

static cJSON *load(void) {
  cJSON *root = NULL;
  fa_error err = {""};
  REQUIRE(fa_report_load(path, &root, &err) == FA_OK);
  return root;
}

static cJSON *groups_again(const cJSON *root) {
  fa_causes *causes = fa_causes_make();
  cJSON *groups = NULL;
  fa_error err;
  REQUIRE(causes && fa_causes_note_report(causes, root, &err) == FA_OK);
  REQUIRE(fa_causes_conclude(causes, at(root, "failures"), NULL, "fa-verify", &groups, &err) == FA_OK);
  fa_causes_free(causes);
  return groups;
}

static void test_read_back(void) {
  write_report(-1);
  cJSON *root = load(), *again = groups_again(root);
  const cJSON *group = at(root, "groups")->child, *place;
  char *was = cJSON_Print(at(root, "groups")), *is = cJSON_Print(again);
  CHECK_MSG(strcmp(was, is) == 0, "%s\n%s", was, is);
  CHECK(cJSON_GetArraySize(again) == 1);
  CHECK(cJSON_GetArraySize(at(group, "failures")) == at(group, "count")->valuedouble);
  cJSON_ArrayForEach(place, at(group, "failures")) {
    const cJSON *failure = cJSON_GetArrayItem(at(root, "failures"), (int)place->valuedouble);
    CHECK(at(failure, "explained_by") && !cJSON_IsTrue(at(failure, "waived")));
  }
  free(was);
  free(is);
  cJSON_Delete(again);
  cJSON_Delete(root);
}

static void test_shrunk(void) {
  write_report(-1);
  cJSON *root = load();
  const int k = (int)at(at(root, "groups")->child, "failures")->child->next->valuedouble;
  char want[64];
  cJSON_Delete(root);
  write_report(k);
  root = load();
  const cJSON *group = at(root, "groups")->child, *smallest = at(group, "smallest");
  snprintf(want, sizeof want, "fa-verify repro %s:%d.shrunk", path, k);
  CHECK_MSG(strcmp(at(group, "repro")->valuestring, want) == 0, "%s", at(group, "repro")->valuestring);
  CHECK(cJSON_IsTrue(at(smallest, "shrunk")) && at(at(smallest, "case"), "seqlen_q")->valuedouble == 2048);
  cJSON_Delete(root);
}

static void test_junit(void) {
  static char text[1 << 20];
  const char *xml = "test_causes_report.xml";
  fa_error err;
  write_report(-1);
  cJSON *root = load();
  REQUIRE(fa_report_write_junit(root, xml, &err) == FA_OK);
  FILE *f = fopen(xml, "r");
  REQUIRE(f);
  text[fread(text, 1, sizeof text - 1, f)] = 0;
  fclose(f);
  int n = 0;
  for (const char *found = text; (found = strstr(found, "cause 1: the text of alibi_missing")); ++found) ++n;
  CHECK_MSG(n == cJSON_GetArraySize(at(at(root, "groups")->child, "failures")), "%d", n);
  cJSON_Delete(root);
  remove(xml);
}

/* ---- shapes ---- */

static void expect_same(const fa_case *c, const char *text) {
  fa_shape was, is;
  fa_shape_of(c, &was);
  CHECK_MSG(fa_shape_parse(text, &is), "%s", text);
  for (int i = 0; i < FA_SHAPE_NUMBERS; ++i)
    CHECK_MSG(fabs(is.number[i] - was.number[i]) <= 1e-12 * fabs(was.number[i]),
              "%s: %s: number %d is %.17g, not %.17g", c->name, text, i, is.number[i], was.number[i]);
  for (int i = 0; i < FA_SHAPE_NAMES; ++i)
    CHECK_MSG(!was.name[i][0] || strcmp(is.name[i], was.name[i]) == 0, "%s: %s: name %d is %s, not %s",
              c->name, text, i, is.name[i], was.name[i]);
}

static void test_shapes(void) {
  static fa_result r;
  size_t longest = 0, total = 0;
  for (int64_t i = 0; i < 3000; ++i) {
    char text[1024];
    fa_case c;
    fa_error err;
    REQUIRE(fa_generate("everything", 3, i, &c, &err) == FA_OK);
    fa_shape_text_of(&c, text, sizeof text);
    expect_same(&c, text);
    if (strlen(text) > longest) longest = strlen(text);
    total += strlen(text);
    fa_case_free(&c);
  }
  CHECK_MSG(longest < sizeof r.shape - 32, "%zu of %zu characters", longest, sizeof r.shape);
  CHECK_MSG(total / 3000 < 160, "%zu characters on average", total / 3000);
}

static void test_damaged_shapes(void) {
  fa_shape s;
  CHECK(!fa_shape_parse("", &s));
  CHECK(!fa_shape_parse("b=1 hq=1 hkv=1 sq=4 sk=4 d=8", &s));
  CHECK(!fa_shape_parse("b=1 hq=1 hkv=1 sq=4 sk=nan d=8 dv=8", &s));
  CHECK(fa_shape_parse("  b=1 hq=1 later=5 hkv=1 sq=4 sk=6 word d=16 dv=8 fill=ties layout=", &s));
  CHECK(s.number[FA_SHAPE_MOST_SHIFT] == 2 && s.number[FA_SHAPE_SCALE] == 0.25 &&
        s.number[FA_SHAPE_LEFT] == -1);
  CHECK(strcmp(s.name[FA_SHAPE_FILL_V], "ties") == 0 && strcmp(s.name[FA_SHAPE_LAYOUT], "bshd") == 0);
}

int main(void) {
  test_read_back();
  test_shrunk();
  test_junit();
  test_shapes();
  test_damaged_shapes();
  remove(path);
  return check_done();
}
