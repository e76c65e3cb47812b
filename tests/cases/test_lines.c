/* Where the cases of a file stand in it. */
#include "tests/support/check.h"

#include "cases/codec/file.h"
#include "cases/codec/read.h"

#include <string.h>

enum { MOST = 8 };

/* want: lines of the elements at key, 0 behind the last. */
static void test(const char *text, const char *key, const int64_t want[MOST]) {
  int64_t got[MOST];
  fa_case_lines_find(text, strlen(text), key, got, MOST);
  for (int i = 0; i < MOST; ++i)
    CHECK_MSG(got[i] == want[i], "%s of %s: element %d on line %lld, not %lld", key, text, i,
              (long long)got[i], (long long)want[i]);
}

static void test_scanning(void) {
  test("{\"cases\": [{}, {},\n\n{} ]}", "cases", (int64_t[MOST]){1, 1, 3});
  test("{\"a\":1,\n\"cases\"\n:\n[\n{\"x\": [1,\n2]}\n,\n{}]}", "cases", (int64_t[MOST]){5, 8});
  test("{\"cases\": []}", "cases", (int64_t[MOST]){0});
  test("{\"cases\": [\n]}", "cases", (int64_t[MOST]){0});
  /* The same word elsewhere: as a value, inside a string, deeper, behind the array. */
  test("{\"note\": \"cases\",\n\"cases\": [\n{}]}", "cases", (int64_t[MOST]){3});
  test("{\"note\": \"\\\"cases\\\": [ {} ]\",\n\"cases\": [{\"cases\": [1,\n2]}, {}]}", "cases",
       (int64_t[MOST]){2, 3});
  test("{\"defaults\": {\"cases\": [\n1]}, \"cases\": [\n7]}", "cases", (int64_t[MOST]){3});
  test("{\"sweeps\": [1,\n2], \"cases\": [\n3], \"random\": [4,\n5]}", "cases", (int64_t[MOST]){3});
  test("{\"sweeps\": [1,\n2], \"cases\": [\n3], \"random\": [4,\n5]}", "random", (int64_t[MOST]){3, 4});
  test("{\"cases\": [1], \"defaults\": {\"a\": 2,\n\"b\": 3}}", "cases", (int64_t[MOST]){1});
  /* Brackets and commas in strings, escapes at their ends. */
  test("{\"cases\": [\"],[\\\\\",\n\"a\\\",b\",\n{}]}", "cases", (int64_t[MOST]){1, 2, 3});
  /* More elements than room. */
  test("{\"cases\": [1,2,3,4,5,6,7,8,\n9]}", "cases", (int64_t[MOST]){1, 1, 1, 1, 1, 1, 1, 1});
  /* No JSON: nothing is read beyond the end. */
  test("{\"cases\": [\"", "cases", (int64_t[MOST]){1});
  test("{\"cases\\", "cases", (int64_t[MOST]){0});
  test("\"", "cases", (int64_t[MOST]){0});
}

/* want: places of the file's cases, NULL behind the last. */
static void test_file(const char *text, const char *name, const char *const want[MOST]) {
  fa_case_list list = {0};
  fa_error err;
  REQUIRE(fa_case_file_parse(text, strlen(text), name, NULL, &list, &err) == FA_OK);
  for (int64_t i = 0; i < list.n; ++i) {
    const char *place = list.v[i].place ? list.v[i].place : "nowhere";
    CHECK_MSG(want[i] && strcmp(place, want[i]) == 0, "%s: case %lld is at %s", text, (long long)i, place);
  }
  CHECK(list.n < MOST && !want[list.n]);
  fa_case copy;
  REQUIRE(fa_case_copy(&copy, &list.v[0]) == FA_OK);
  CHECK(!copy.place == !list.v[0].place && (!copy.place || strcmp(copy.place, list.v[0].place) == 0));
  copy.place = (free(copy.place), NULL);
  CHECK(fa_case_equal(&copy, &list.v[0]));
  fa_case_free(&copy);
  fa_case_list_free(&list);
}

int main(void) {
  test_scanning();
  test_file(
      "{\"fa_cases\": 1,\n\"cases\": [{\"name\": \"a\"},\n{\"name\": \"b\"}],\n"
      "\"sweeps\": [{\"base\": {},\n \"over\": {\"seqlen_q\": [1, 2]}},\n{\"over\": {\"seqlen_q\": [3]}}]}",
      "dir/x.json",
      (const char *const[MOST]){"dir/x.json:2", "dir/x.json:3", "dir/x.json:4", "dir/x.json:4",
                                "dir/x.json:6"});
  test_file("{\"seqlen_q\": 3}", "one.json", (const char *const[MOST]){"one.json:1"});
  test_file("{\"seqlen_q\": 3}\n\n{\"seqlen_q\": 4}\n", "lines.json",
            (const char *const[MOST]){"lines.json:1", "lines.json:3"});
  test_file("{\"seqlen_q\": 3}", "-", (const char *const[MOST]){"nowhere"});
  return check_done();
}
