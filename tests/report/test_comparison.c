/* Two reports compared: which cases are new failures, fixed, slower, and so on. */
#include "tests/support/check.h"

#include "report/compare.h"
#include "report/json.h"

#include <cjson/cJSON.h>

#include <stdlib.h>
#include <string.h>

/* One letter a case: its name; then its state (P, F, C, S), its backend's letter, its seconds. "aPx1 bFx0.5" */
static cJSON *report_of(const char *text) {
  static const char *const states[] = {['P'] = "PASS", ['F'] = "FAIL", ['C'] = "CRASH", ['S'] = "SKIP"};
  cJSON *root = cJSON_CreateObject(), *cases = cJSON_AddArrayToObject(root, "cases");
  char name, state, backend;
  double seconds;
  int n = 0;
  for (; sscanf(text, " %c%c%c%lf%n", &name, &state, &backend, &seconds, &n) == 4; text += n) {
    cJSON *c = cJSON_CreateObject();
    cJSON_AddStringToObject(c, "name", (char[]){name, 0});
    cJSON_AddStringToObject(c, "record", (char[]){(char)('z' - name % 16), name, 0});
    cJSON_AddStringToObject(c, "backend", (char[]){backend, 0});
    cJSON_AddStringToObject(c, "state", states[(int)state]);
    cJSON_AddNumberToObject(c, "seconds", seconds);
    cJSON_AddItemToArray(cases, c);
  }
  return root;
}

/* want: "kind name, ..." in the order of the comparison, then the number of cases that are the same. */
static void test(const char *a, const char *b, const char *want, int same) {
  cJSON *first = report_of(a), *second = report_of(b), *out = NULL;
  const cJSON *row;
  char got[400] = "";
  fa_error err;
  REQUIRE(fa_report_compare(first, second, "a.json", "b.json", &out, &err) == FA_OK);
  cJSON_ArrayForEach(row, cJSON_GetObjectItem(out, "rows")) {
    const size_t n = strlen(got);
    snprintf(got + n, sizeof got - n, "%s%s %s", n ? ", " : "", cJSON_GetObjectItem(row, "kind")->valuestring,
             cJSON_GetObjectItem(row, "name")->valuestring);
  }
  CHECK_MSG(strcmp(got, want) == 0, "\n  got:  %s\n  want: %s", got, want);
  CHECK(cJSON_GetObjectItem(out, "same")->valuedouble == same);
  int64_t n_new = 0;
  for (const char *at = want; (at = strstr(at, "new ")); ++at) ++n_new;
  CHECK(fa_report_new_failures(out) == n_new);
  cJSON_Delete(out);
  cJSON_Delete(first);
  cJSON_Delete(second);
}

static void test_text(void) {
  cJSON *a = report_of("aPx1 bFx1 cPx1"), *b = report_of("aFx1 bPx1 cPx3 dPx1"), *out = NULL;
  char *text = NULL;
  size_t n = 0;
  fa_error err;
  REQUIRE(fa_report_compare(a, b, "a", "b", &out, &err) == FA_OK);
  FILE *f = open_memstream(&text, &n);
  REQUIRE(f);
  fa_report_print_comparison(f, out, false);
  fclose(f);
  CHECK_MSG(strcmp(text, "new     a  x  PASS -> FAIL\nfixed   b  x  FAIL -> PASS\nslower  c  x  1 s -> 3 s\n"
                         "new:1 changed:0 fixed:1 slower:1 faster:0 added:1 same:0\n") == 0,
            "%s", text);
  free(text);
  cJSON_Delete(out);
  cJSON_Delete(a);
  cJSON_Delete(b);
}

int main(void) {
  test("aPx1 bPx1 cPx1", "cPx1 aFx1 bPx1", "new a", 2);
  test("aFx1 bFx1 cFx1", "aPx1 bCx1 cFx1", "changed b, fixed a", 1);
  test("aPx1 bPx1 cPx0.01", "aPx2.5 bPx0.4 cPx0.05", "slower a, faster b", 1);
  test("aPx1 bSx1 cFx1 dPx1", "aSx1 bPx1 cSx1 eFx1 fPx1",
       "new e, skipped c, skipped a, judged b, added f, gone d", 0);
  test("aFx1", "", "gone a", 0);
  /* One backend each: they are what is compared. Several: each with its own. */
  test("aPx1 bPx1", "aPy1 bFy1", "new b", 1);
  test("aPx1 aFy1", "aFx1 aPy1", "new a, fixed a", 0);
  test("aPx1 aFy1", "aFx1", "new a, gone a", 0);
  /* The same case several times: in turn. */
  test("aPx1 aFx1 aPx1", "aPx1 aFx1 aFx1", "new a", 2);
  test("", "", "", 0);
  test_text();
  return check_done();
}
