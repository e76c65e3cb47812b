/* Maps on their way: through the pipe and the journal into reports, of the first failures of a run alone. */
#include "tests/report/merged_trees.h"
#include "tests/support/check.h"

#include "fuzz/workers/wire.h"
#include "report/journal_line.h"
#include "report/maps.h"

#include <cjson/cJSON.h>

#include <string.h>

/* O of 2 sequences, 2 heads, 5 x 3 elements; the cells of panel p are 10 p, 10 p + 1, ... */
static fa_map *make_map(void) {
  fa_map *m = calloc(1, sizeof *m);
  REQUIRE(m);
  *m = (fa_map){.n_panel_axes = 2,
                .panel_axis = {"b", "h"},
                .row_axis = "q",
                .column_axis = "d",
                .panel_extent = {2, 2},
                .rows = 5,
                .columns = 3,
                .row_step = 1,
                .column_step = 1,
                .row_cells = 5,
                .column_cells = 3,
                .n_panels = 2,
                .n_strips = 2,
                .panel = {3, 1},
                .strip = {1, 3}};
  for (int k = 0; k < 30; ++k) m->cell[k] = (uint8_t)(k < 15 ? 240 + k : k);
  for (int k = 0; k < 10; ++k) m->strip_cell[k] = (uint8_t)(7 * k);
  return m;
}

static void make_failure(fa_result *r, int number) {
  char line[64];
  fa_result_init(r);
  snprintf(line, sizeof line, "{\"name\":\"f\",\"seqlen_q\":%d}", number + 1);
  r->state = FA_FAIL;
  r->name = strdup("f");
  r->case_line = strdup(line);
  r->n_verdicts = 2;
  r->verdict[0] = (fa_verdict){.id = FA_T_O, .rank = 4, .dtype = FA_F16, .judged = true, .count = 60};
  r->verdict[1] = (fa_verdict){
      .id = FA_T_DQ, .rank = 4, .dtype = FA_F16, .judged = true, .count = 60, .bad = 3, .fail = true};
  r->map[1] = make_map();
}

static const cJSON *map_of(const cJSON *failure, int tensor) {
  return cJSON_GetObjectItem(cJSON_GetArrayItem(cJSON_GetObjectItem(failure, "tensors"), tensor), "map");
}

static void test_pipe(void) {
  fa_result r, back;
  fa_error err;
  size_t n = 0;
  make_failure(&r, 0);
  r.map[0] = make_map();
  r.map[0]->rows = 77;
  char *bytes = fa_wire_pack(&r, &n);
  REQUIRE(bytes);
  fa_result_init(&back);
  REQUIRE(fa_wire_unpack(bytes, n, &back, &err) == FA_OK);
  REQUIRE(back.map[0] && back.map[1]);
  CHECK(back.map[0]->rows == 77 && memcmp(back.map[1], r.map[1], sizeof(fa_map)) == 0);
  fa_result_free(&back);
  CHECK(!back.map[1]);
  for (size_t i = n - sizeof(fa_map); i < n; ++i) { /* an overwritten map is detected, or harmless */
    const char old = bytes[i];
    bytes[i] = (char)0xff;
    fa_result_init(&back);
    if (fa_wire_unpack(bytes, n, &back, &err) == FA_OK) free(fa_report_journal_line(&back, 0, 0));
    fa_result_free(&back);
    bytes[i] = old;
  }
  free(bytes);
  fa_result_free(&r);
}

static void test_json(void) {
  static const char want[] =
      "{\"panel\":[{\"name\":\"b\",\"extent\":2},{\"name\":\"h\",\"extent\":2}],"
      "\"row\":{\"name\":\"q\",\"extent\":5,\"step\":1,\"cells\":5},"
      "\"column\":{\"name\":\"d\",\"extent\":3,\"step\":1,\"cells\":3},"
      "\"panels\":{\"at\":[[1,1],[0,1]],\"cells\":\"8PHy8/T19vf4+fr7/P3+DxAREhMUFRYXGBkaGxwd\"},"
      "\"strips\":{\"at\":[[0,1],[1,1]],\"cells\":\"AAcOFRwjKjE4Pw==\"}}";
  fa_map *m = make_map();
  cJSON *o = fa_report_map(m);
  char *text = cJSON_PrintUnformatted(o);
  CHECK_MSG(strcmp(text, want) == 0, "%s", text);
  free(text);
  cJSON_Delete(o);
  free(m);
}

static void test_ratio(void) {
  CHECK(fa_map_ratio(FA_MAP_NOTHING) == 0 && fa_map_ratio(FA_MAP_ONE) == 1 &&
        fa_map_ratio(FA_MAP_ONE + 8) == 2);
  CHECK(fa_map_ratio(249) == 0x1p23 && fa_map_ratio(FA_MAP_BEYOND) > 1e300 &&
        fa_map_ratio(FA_MAP_CLASS) > 1e300);
}

/* Half of the results as of this run, half as of a journal. */
static void add_failure(fa_report *report, int number) {
  fa_result r;
  fa_error err;
  make_failure(&r, number);
  if (number % 2) {
    REQUIRE(fa_report_add(report, &r, &err) == FA_OK);
  } else {
    char *text = fa_report_journal_line(&r, number, 1);
    fa_report_line line;
    REQUIRE(text && fa_report_line_parse(text, &line, &err) == FA_OK);
    REQUIRE(fa_report_add_line(report, &line, &err) == FA_OK);
    fa_report_line_free(&line);
    free(text);
  }
  fa_result_free(&r);
}

static cJSON *report_of(int first, int n) {
  const fa_report_pair host[] = {{NULL, NULL}};
  const fa_report_head head = {"1", "abc", "fa-verify run", "host", "", "", host};
  fa_report report;
  fa_error err;
  cJSON *root = NULL;
  REQUIRE(fa_report_init(&report, &head, &err) == FA_OK);
  for (int k = first; k < first + n; ++k) add_failure(&report, k);
  REQUIRE(fa_report_complete(&report, NULL, 1, &err) == FA_OK);
  char *text = cJSON_PrintUnformatted(report.root);
  REQUIRE(text && fa_report_parse(text, strlen(text), "report", &root, &err) == FA_OK);
  free(text);
  fa_report_free(&report);
  return root;
}

static void test_first_failures(void) {
  enum { LATER = 5 };
  cJSON *all = report_of(0, FA_REPORT_MAPS + LATER), *merged = NULL, *late = report_of(FA_REPORT_MAPS, LATER);
  const cJSON *failures = cJSON_GetObjectItem(all, "failures"), *f;
  fa_error err;
  int k = 0;
  cJSON_ArrayForEach(f, failures) {
    const bool first = k++ < FA_REPORT_MAPS;
    CHECK((map_of(f, 1) != NULL) == first && !map_of(f, 0));
    CHECK(cJSON_IsTrue(cJSON_GetObjectItem(f, "maps_left_out")) == !first);
  }
  /* The same results with their maps are no other results, and the first report's stay. */
  cJSON *const both[] = {late, all};
  REQUIRE(merge_trees(both, (const char *const[]){"late", "all"}, 2, &merged, &err) == FA_OK);
  CHECK(!cJSON_GetObjectItem(merged, "contradictions"));
  failures = cJSON_GetObjectItem(merged, "failures");
  CHECK(cJSON_GetArraySize(failures) == FA_REPORT_MAPS + LATER);
  cJSON_ArrayForEach(f, failures) CHECK(map_of(f, 1) != NULL);
  cJSON_Delete(merged);
  cJSON_Delete(all);
  cJSON_Delete(late);
}

int main(void) {
  test_pipe();
  test_json();
  test_ratio();
  test_first_failures();
  return check_done();
}
