/* Workflow commands and the job's table: escaping, places, and what there is one of. */
#include "tests/support/check.h"

#include "report/ci/annotations.h"
#include "report/place.h"

#include <cjson/cJSON.h>

#include <string.h>
#include <unistd.h>

static char *annotations_of(const cJSON *root, const char *folder) {
  char *text = NULL;
  size_t n = 0;
  FILE *out = open_memstream(&text, &n);
  REQUIRE(out);
  fa_annotations_print(out, root, folder);
  fclose(out);
  return text;
}

static int times(const char *text, const char *what) {
  int n = 0;
  for (const char *at = text; (at = strstr(at, what)); at += strlen(what)) ++n;
  return n;
}

#define SUMMARY                                                                                              \
  "\"backend\":{\"name\":\"a|b\"},\"summary\":{\"total\":9,\"passed\":5,\"failed\":4,\"skipped\":0,"         \
  "\"error\":0}"

/* A report with n groups, each with a failure of its own. */
static cJSON *report_with(int n, const char *more) {
  char *text = NULL;
  size_t size = 0;
  FILE *f = open_memstream(&text, &size);
  REQUIRE(f);
  fprintf(f, "{" SUMMARY ",%s\"failures\":[", more);
  for (int i = 0; i < n; ++i)
    fprintf(f,
            "%s{\"case\":{},\"name\":\"c%d\",\"state\":\"FAIL\",\"backend\":\"%s\",\"place\":\"/repo/cases/"
            "a,b:c.json:%d\"}",
            i ? "," : "", i, i % 2 ? "py:x" : "host", i + 3);
  fputs("],\"groups\":[", f);
  for (int i = 0; i < n; ++i)
    fprintf(f,
            "%s{\"title\":\"100%% wrong: a, "
            "b\\r\\n::error::x\",\"class\":\"FAIL\",\"count\":2,\"predicate\":{\"kind\":"
            "\"separates\",\"text\":\"d > 1 | "
            "e\"},\"smallest\":{\"name\":\"c%d\",\"failure\":%d},\"repro\":\"run 5%%\"}",
            i ? "," : "", i, i);
  fputs("]}", f);
  fclose(f);
  cJSON *root = cJSON_Parse(text);
  REQUIRE(root);
  free(text);
  return root;
}

static void test_causes(void) {
  cJSON *root = report_with(2, "\"sources\":{\"py:x\":\"/repo/k.py:12\"},");
  char *text = annotations_of(root, "/repo");
  static const char first[] = "::error file=cases/a%2Cb%3Ac.json,line=3,title=fa-verify%3A 100%25 wrong%3A "
                              "a%2C b%0D%0A%3A%3Aerror%3A%3Ax::"
                              "2 of 9 cases fail so: FAIL%0Aif d > 1 | e%0Abackend: host%0Asmallest: c0%0Ain "
                              "/repo/cases/a,b:c.json:3%0Aagain: run 5%25\n";
  CHECK_MSG(strncmp(text, first, sizeof first - 1) == 0, "\n%s\nwant\n%s", text, first);
  CHECK_MSG(strstr(text, "::error file=k.py,line=12,title="), "%s", text);
  CHECK(strstr(
      text,
      "\n::notice title=fa-verify%3A summary::9 cases: 5 passed, 4 failed, 0 skipped, 0 in error (a|b)\n"));
  CHECK(times(text, "\n") == 3); /* nothing in a text begins a line */
  free(text);
  text = annotations_of(root, "/rep"); /* part of a name is no folder */
  CHECK(strstr(text, "file=/repo/k.py,"));
  free(text);
  cJSON_Delete(root);
}

static void test_many(void) {
  for (int n = 9; n <= 30; ++n) {
    cJSON *root = report_with(n, "");
    char *text = annotations_of(root, "");
    CHECK_MSG(times(text, "::error file=") == (n > 10 ? 9 : n) && times(text, "\n") == (n > 10 ? 10 : n) + 1,
              "%d causes", n);
    CHECK((strstr(text, "more causes are in the report") != NULL) == (n > 10));
    free(text);
    cJSON_Delete(root);
  }
}

static void test_rest(void) {
  cJSON *root = cJSON_Parse("{\"backend\":{\"name\":\"host\"},\"summary\":{\"total\":9,\"passed\":5,"
                            "\"failed\":0,\"skipped\":3,\"error\":1,\"known\":2},"
                            "\"failures\":[{\"name\":\"lost\",\"state\":\"ERROR\",\"reason\":\"no "
                            "memory\",\"backend\":\"host\"}],\"groups\":[],"
                            "\"baseline\":{\"items\":[{\"kind\":\"fixed\",\"name\":\"f\"},{\"kind\":"
                            "\"slower\",\"name\":\"s\",\"text\":\"1 s -> 2 s\"},"
                            "{\"kind\":\"slower\",\"name\":\"t\",\"text\":\"x\"}]},"
                            "\"require\":{\"items\":[{\"what\":\"features\",\"wanted\":\"gqa\",\"cases\":3,"
                            "\"judged\":0,\"met\":false,\"reason\":\"none\"},"
                            "{\"what\":\"judged\",\"wanted\":\"1%\",\"met\":true}]}}");
  REQUIRE(root);
  char *text = annotations_of(root, "");
  CHECK(strstr(text, "::error title=fa-verify%3A not judged for want of what it needs::1 case, the first: "
                     "lost: no memory\n"));
  CHECK(strstr(text, "::error title=fa-verify%3A slower than in the baseline::s: 1 s -> 2 s%0At: x\n"));
  CHECK(strstr(
      text, "::warning title=fa-verify%3A required%2C but not judged::features gqa: 0 of 3 cases. none\n"));
  CHECK(times(text, "::warning") == 1 && times(text, "::error") == 2 && strstr(text, ", 2 known (host)"));
  free(text);
  cJSON_Delete(root);
}

static void test_table(void) {
  char path[64], text[4000] = "";
  fa_error err;
  snprintf(path, sizeof path, "summary.%d.md", (int)getpid());
  cJSON *root = report_with(1, "");
  REQUIRE(fa_job_summary_append(path, root, &err) == FA_OK &&
          fa_job_summary_append(path, root, &err) == FA_OK);
  FILE *f = fopen(path, "r");
  REQUIRE(f && fread(text, 1, sizeof text - 1, f) > 0);
  fclose(f);
  unlink(path);
  CHECK_MSG(times(text, "### fa-verify: a&#124;b fails\n") == 2, "%s", text); /* appended */
  CHECK(strstr(text, "| 9 | 5 | 4 | 0 | 0 | 0 |\n") && strstr(text, " | 2 | d &#62; 1 &#124; e | c0 |\n"));
  for (const char *line = text; line; line = strchr(line + 1, '\n'))
    CHECK(line[0] != '\n' || line[1] != '|' || (strchr(line + 1, '\n') && strchr(line + 1, '\n')[-1] == '|'));
  CHECK(fa_job_summary_append("no/such/folder", root, &err) == FA_ERR_IO);
  cJSON_Delete(root);
}

static void test_places(void) {
  static const struct {
    const char *text, *file;
    long line;
  } t[] = {{"a.py:12", "a.py", 12},
           {"a.py", "a.py", 0},
           {"c:/a.py:3", "c:/a.py", 3},
           {"a:b", "a:b", 0},
           {"a:0", "a:0", 0},
           {"a:12x", "a:12x", 0},
           {"", "", 0},
           {"a:1:2", "a:1", 2},
           {":5", "", 5}};
  for (size_t i = 0; i < sizeof t / sizeof *t; ++i) {
    const fa_place p = fa_place_read(t[i].text);
    CHECK_MSG(strcmp(p.file, t[i].file) == 0 && p.line == t[i].line, "%s: %s, %ld", t[i].text, p.file,
              p.line);
  }
  fa_error err = {""};
  CHECK(fa_annotations_check("github", &err) == FA_OK &&
        fa_annotations_check("gitlab", &err) == FA_ERR_INPUT && strstr(err.text, "--junit"));
}

int main(void) {
  test_causes();
  test_many();
  test_rest();
  test_table();
  test_places();
  return check_done();
}
