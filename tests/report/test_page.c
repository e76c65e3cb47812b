/* The HTML page, and reports made to break their readers. */
#include "tests/report/merged_trees.h"
#include "tests/support/check.h"

#include "cases/base/atomic_file.h"
#include "report/failure_class.h"
#include "report/html/page.h"

#include <cjson/cJSON.h>

#include <string.h>
#include <unistd.h>

static char path[64];

static fa_status load(const char *text, cJSON **root) {
  fa_error err = {""};
  REQUIRE(fa_file_write_atomic(path, text, strlen(text), &err) == FA_OK);
  fa_status status = fa_report_load(path, root, &err);
  CHECK_MSG(status == FA_OK || strstr(err.text, path), "the message names the file: %s", err.text);
  return status;
}

static char *page_of(const cJSON *root) {
  fa_error err = {""};
  char *page = NULL;
  size_t n = 0;
  REQUIRE(fa_page_write(root, NULL, path, &err) == FA_OK && fa_file_read(path, &page, &n, &err) == FA_OK);
  return page;
}

static int times(const char *text, const char *what) {
  int n = 0;
  for (const char *at = text; (at = strstr(at, what)); ++at) ++n;
  return n;
}

#define HEAD                                                                                                 \
  "{\"fa_report\":1,\"command\":\"a --b "                                                                    \
  "'<i>'\",\"summary\":{\"total\":2,\"passed\":0,\"failed\":2,\"skipped\":0,"                                \
  "\"error\":0},"

static void test_page(void) {
  static const char text[] = HEAD
      "\"failures\":[{\"case\":{\"name\":\"<script>alert(1)</script>\",\"score_mod\":\"score > 0.5 ? <b>\","
      "\"buffers\":{\"slopes\":{},\"x<y\":{}}},\"name\":\"<script>alert(1)</"
      "script>\","
      "\"state\":\"FAIL\",\"backend\":\"ho\\\"st'\",\"reason\":\"a & b\",\"repro\":\"fa-verify repro "
      "r.json:0\","
      "\"tensors\":[{\"name\":\"dq\",\"failed\":true,\"count\":9,\"bad\":3,\"class_bad\":1,"
      "\"worst_ratio\":\"inf\",\"where\":{\"text\":\"every bad row has q < 5\"},"
      "\"worst\":[{\"index\":[0,1,2,3],\"got\":\"nan\",\"want\":0.5,\"err\":\"inf\",\"bound\":0.25}]}],"
      "\"shrunk\":{\"case\":{\"family\":\"flash\"},\"reproduced\":\"5 of "
      "5\",\"repro\":\"r.json:0.shrunk\"}}],"
      "\"cases\":[{\"name\":\"<u>\",\"state\":\"PASS\",\"kernel\":\"k&k<1>\"}]}";
  cJSON *root = NULL;
  REQUIRE(load(text, &root) == FA_OK);
  char *page = page_of(root);
  CHECK(!strstr(page, "<script>alert") && strstr(page, "&#60;script&#62;alert(1)&#60;/script&#62;"));
  CHECK(!strstr(page, "<i>") && !strstr(page, "<u>") && strstr(page, "ho&#34;st&#39;"));
  CHECK(strstr(page, "a &#38; b") && strstr(page, "every bad row has q &#60; 5") &&
        strstr(page, "[0,1,2,3]"));
  CHECK(strstr(page, "score > 0.5 ? \\u003cb>") && strstr(page, "x\\u003cy"));
  CHECK(strstr(page, "<tr><td>k&#38;k</td><td>1</td>"));
  CHECK(strstr(page, "3 of 9 elements wrong") && strstr(page, "r.json:0.shrunk"));
  CHECK(strstr(page, "<title>2 of 2 failed - fa-verify</title>"));
  CHECK(strstr(page, "fa-verify run --backend &#39;ho&#34;st&#39;"));
  CHECK(times(page, "<script") == 2 && times(page, "</script") == 2);
  CHECK(!strstr(page, "http:") && !strstr(page, "https:") && !strstr(page, " src=") &&
        !strstr(page, " href=")); /* self-contained */
  free(page);
  fa_failure_class class;
  CHECK(fa_failure_class_from_json(cJSON_GetObjectItem(root, "failures")->child, &class));
  CHECK(class.state == FA_FAIL && class.tensor == FA_T_DQ && class.kind == FA_KIND_CLASS);
  cJSON_Delete(root);
}

/* Each value of a report replaced by an invalid one: rejected, or read without harm. */
static void test_hostile(void) {
  static const char *const values[] = {"null", "true", "-1",      "1e308",        "\"x\"",
                                       "[]",   "{}",   "[[[1]]]", "{\"state\":7}"};
  static const char *const frames[] = {
      "{\"fa_report\":%s,\"summary\":{},\"failures\":[],\"cases\":[]}",
      HEAD "\"failures\":%s,\"cases\":[]}",
      HEAD "\"failures\":[],\"cases\":%s}",
      HEAD "\"failures\":[],\"cases\":[{\"state\":\"PASS\",\"name\":%s}]}",
      HEAD "\"failures\":[{\"state\":\"FAIL\",\"case\":{},\"tensors\":%s}],\"cases\":[]}",
      HEAD "\"failures\":[{\"state\":\"FAIL\",\"case\":{},\"tensors\":[%s]}],\"cases\":[]}",
      HEAD "\"failures\":[{\"state\":\"FAIL\",\"case\":{},\"tensors\":[{\"failed\":true,\"worst\":%s}]}],"
           "\"cases\":[]}",
      HEAD "\"failures\":[{\"state\":\"FAIL\",\"case\":{},\"tensors\":[{\"failed\":true,\"worst\":[%s]}]}],"
           "\"cases\":[]}",
      HEAD "\"failures\":[{\"state\":\"CRASH\",\"case\":{},\"shrunk\":%s,\"reason\":\"SIG\"}],\"cases\":[]}"};
  for (size_t f = 0; f < sizeof frames / sizeof *frames; ++f)
    for (size_t v = 0; v < sizeof values / sizeof *values; ++v) {
      char text[2000];
      cJSON *root = NULL, *merged = NULL;
      fa_error err = {""};
      fa_failure_class class;
      snprintf(text, sizeof text, frames[f], values[v]);
      if (load(text, &root) != FA_OK) continue;
      free(page_of(root));
      cJSON *both[] = {root, root};
      CHECK(merge_trees(both, (const char *const[]){path, path}, 2, &merged, &err) == FA_OK &&
            fa_report_write_junit(merged, path, &err) == FA_OK);
      fa_failure_class_from_json(cJSON_GetArrayItem(cJSON_GetObjectItem(root, "failures"), 0), &class);
      cJSON_Delete(merged);
      cJSON_Delete(root);
    }
}

static void test_size(void) {
  enum { N = 2000000 };
  char *text = malloc(N + 1000);
  cJSON *root = NULL;
  REQUIRE(text);
  memset(text, '[', N); /* deep */
  text[N] = 0;
  CHECK(load(text, &root) == FA_ERR_INPUT);
  int n = sprintf(text, HEAD "\"cases\":[],\"failures\":[{\"state\":\"FAIL\",\"case\":{},\"reason\":\"");
  memset(text + n, '<', N - 100);
  strcpy(text + n + N - 100, "\"}]}");
  REQUIRE(load(text, &root) == FA_OK);
  free(page_of(root));
  cJSON_Delete(root);
  free(text);
}

int main(void) {
  snprintf(path, sizeof path, "/tmp/fa-test-page-%d.json", (int)getpid());
  test_page();
  test_hostile();
  test_size();
  unlink(path);
  return check_done();
}
