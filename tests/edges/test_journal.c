/* The journal of a run, and the file of waivers: what is cut off, refused, moved away, told, and given back. */
#include "fuzz/campaign/journal.h"
#include "fuzz/campaign/tier.h"
#include "fuzz/campaign/waivers.h"
#include "tests/edges/taken.h"
#include "tests/support/check.h"

#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static char path[] = "/tmp/fa-journal-XXXXXX/run.journal";
static bool replaces; /* the file is another one by the time that it is locked */

static void write_text(const char *text) {
  FILE *f = fopen(path, "w");
  REQUIRE(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

static long long size_of(const char *file) {
  struct stat s;
  return stat(file, &s) == 0 ? (long long)s.st_size : -1;
}

/* ---- between open and lock ---- */

int __real_fcntl(int fd, int cmd, ...);
int __wrap_fcntl(int fd, int cmd, ...);

int __wrap_fcntl(int fd, int cmd, ...) {
  va_list args;
  va_start(args, cmd);
  void *what = va_arg(args, void *);
  va_end(args);
  if (cmd == F_SETLK && replaces) {
    replaces = false;
    unlink(path);
    write_text("its new line\n");
  }
  return __real_fcntl(fd, cmd, what);
}

static void check_replaced(void) {
  fa_journal j;
  fa_error err = {""};
  char *text = NULL;
  write_text("of the one that is gone\n");
  replaces = true;
  REQUIRE(fa_journal_open(&j, path, true, &text, &err) == FA_OK);
  CHECK_MSG(!replaces && strcmp(text, "its new line\n") == 0, "%s", text);
  fa_journal_append(&j, "and another");
  free(text);
  CHECK(fa_journal_close(&j, false, &err) == FA_OK && size_of(path) == 25);
}

/* ---- reading ---- */

static void check_torn(void) {
  fa_journal j;
  fa_error err = {""};
  char *text = NULL;
  write_text("one\ntwo\nthr");
  CHECK_MSG(fa_journal_open(&j, path, true, &text, &err) == FA_OK, "%s", err.text);
  CHECK(text && strcmp(text, "one\ntwo\n") == 0 && size_of(path) == 8);
  free(text);
  fa_journal_append(&j, "three");
  CHECK(fa_journal_close(&j, false, &err) == FA_OK && size_of(path) == 14);
  CHECK_MSG(fa_journal_open(&j, path, true, &text, &err) == FA_OK, "%s", err.text);
  CHECK(text && strcmp(text, "one\ntwo\nthree\n") == 0);
  free(text);
  CHECK(fa_journal_close(&j, true, &err) == FA_OK && size_of(path) == -1);
}

static void check_moved(void) {
  fa_journal j;
  fa_error err = {""};
  char *text = NULL, old[sizeof path + 4];
  snprintf(old, sizeof old, "%s.old", path);
  write_text("of before\n");
  REQUIRE(fa_journal_open(&j, path, false, &text, &err) == FA_OK);
  CHECK(text && !*text && size_of(path) == 0 && size_of(old) == 10);
  free(text);
  CHECK(fa_journal_close(&j, true, &err) == FA_OK);
  unlink(old);
}

static void check_refused(void) {
  fa_journal j;
  fa_error err = {""};
  char *text = NULL;
  CHECK(fa_journal_open(&j, "/nowhere/run.journal", true, &text, &err) == FA_ERR_IO && !text && j.fd == -1);
  CHECK_MSG(strcmp(err.text, "/nowhere/run.journal: No such file or directory") == 0, "%s", err.text);
  CHECK(fa_journal_close(&j, true, &err) == FA_OK); /* there is none */
  FILE *f = fopen(path, "w");
  REQUIRE(f && fwrite("a\0b\n", 1, 4, f) == 4 && fclose(f) == 0);
  CHECK(fa_journal_open(&j, path, true, &text, &err) == FA_ERR_INPUT && strstr(err.text, "NUL byte"));
  unlink(path);
}

/* ---- writing ---- */

/* A disk that is full when the run ends: what it lacks is said. */
static void check_full(void) {
  fa_journal j;
  fa_error err = {""};
  char *text = NULL;
  const struct rlimit before = {RLIM_INFINITY, RLIM_INFINITY}, small = {4, RLIM_INFINITY};
  signal(SIGXFSZ, SIG_IGN);
  REQUIRE(fa_journal_open(&j, path, true, &text, &err) == FA_OK);
  free(text);
  REQUIRE(setrlimit(RLIMIT_FSIZE, &small) == 0);
  fa_journal_append(&j, "much more than there is room for");
  CHECK(fa_journal_close(&j, true, &err) == FA_ERR_IO);
  REQUIRE(setrlimit(RLIMIT_FSIZE, &before) == 0);
  CHECK_MSG(strstr(err.text, "cannot write: File too large; what it lacks is run again"), "%s", err.text);
  CHECK(size_of(path) == 4);
  unlink(path);
}

/* ---- waivers ---- */

#define WAIVER(what, until)                                                                                  \
  "{\"match\":{" what "},\"states\":[\"FAIL\"],\"reason\":\"r" until "\",\"expires\":\"" until "\"}"
#define FILE_OF(waivers) "{\"fa_waivers\":1,\"waivers\":[" waivers "]}"

static fa_status parse(const char *text, fa_waivers **w, fa_error *err) {
  return fa_waivers_parse(text, strlen(text), "known.json", "2000-01-01", w, err);
}

static bool is_date(const char *text) {
  fa_waivers *w = NULL;
  fa_error err = {""};
  const fa_status status = parse(text, &w, &err);
  fa_waivers_free(w);
  CHECK_MSG(status == FA_OK || strstr(err.text, "expires"), "%s", err.text);
  return status == FA_OK;
}

static void check_dates(void) {
  CHECK(is_date(FILE_OF(WAIVER("\"name\":\"a\"", "2000-02-29"))));
  CHECK(is_date(FILE_OF(WAIVER("\"name\":\"a\"", "2024-02-29"))));
  CHECK(!is_date(FILE_OF(WAIVER("\"name\":\"a\"", "1900-02-29"))));
  CHECK(!is_date(FILE_OF(WAIVER("\"name\":\"a\"", "2100-02-29"))));
  CHECK(!is_date(FILE_OF(WAIVER("\"name\":\"a\"", "2023-02-29"))));
  CHECK(!is_date(FILE_OF(WAIVER("\"name\":\"a\"", "2030-00-01"))));
}

/* A date is digits in their places. */
static void check_digits(void) {
  static const char *const none[] = {"2030-02-2a", "203a-02-28", "2030-0a-28",  "2030-02-2/", "2030-02-2:",
                                     "2030x02-28", "2030-02x28", "2030-02-280", "2030-02-2"};
  for (size_t i = 0; i < sizeof none / sizeof *none; ++i) {
    char text[300];
    snprintf(text, sizeof text,
             "{\"fa_waivers\":1,\"waivers\":[{\"match\":{\"name\":\"a\"},\"states\":[\"FAIL\"],\"reason\":"
             "\"r\",\"expires\":"
             "\"%s\"}]}",
             none[i]);
    CHECK_MSG(!is_date(text), "%s", none[i]);
  }
}

/* States and tensors are lists that have something in them. */
static void check_lists(void) {
  static const struct {
    const char *how, *message;
  } lists[] = {{"\"states\":\"FAIL\"", ".states: an array of states is needed"},
               {"\"states\":[]", ".states: an array of states is needed"},
               {"\"states\":{\"a\":\"FAIL\"}", ".states: an array of states is needed"},
               {"\"states\":[3]", ".states: states of failures"},
               {"\"states\":[\"SKIP\"]", ".states: states of failures"},
               {"\"states\":[\"fail\"]", ".states: states of failures"},
               {"\"tensors\":\"o\"", ".tensors: an array of names is needed"},
               {"\"tensors\":[]", ".tensors: an array of names is needed"},
               {"\"tensors\":{\"a\":\"o\"}", ".tensors: an array of names is needed"},
               {"\"tensors\":[3]", ".tensors: names of outputs"},
               {"\"tensors\":[\"o\",\"q\"]", ".tensors: names of outputs"},
               {"\"tensors\":[\"q\",\"o\"]", ".tensors: names of outputs"}};
  for (size_t i = 0; i < sizeof lists / sizeof *lists; ++i) {
    fa_waivers *w = NULL;
    fa_error err = {""};
    char text[300];
    snprintf(text, sizeof text,
             "{\"fa_waivers\":1,\"waivers\":[{\"match\":{\"name\":\"a\"},%s,\"reason\":\"r\",\"expires\":"
             "\"2030-02-28\"}]}",
             lists[i].how);
    CHECK_MSG(parse(text, &w, &err) == FA_ERR_INPUT && !w, "%s", lists[i].how);
    CHECK_MSG(strstr(err.text, lists[i].message), "%s: %s", lists[i].how, err.text);
  }
}

/* Every family can be named, and nothing else. */
static void check_families(void) {
  for (int f = 0; f <= FA_N_FAMILIES; ++f) {
    fa_waivers *w = NULL;
    fa_error err = {""};
    char text[300];
    snprintf(text, sizeof text,
             "{\"fa_waivers\":1,\"waivers\":[{\"match\":{\"family\":\"%s\"},\"states\":[\"FAIL\"],\"reason\":"
             "\"r\","
             "\"expires\":\"2030-02-28\"}]}",
             fa_family_name((fa_family)f));
    CHECK_MSG(parse(text, &w, &err) == (f < FA_N_FAMILIES ? FA_OK : FA_ERR_INPUT), "%d: %s", f, err.text);
    for (int k = 0; f == FA_N_FAMILIES && k < FA_N_FAMILIES; ++k)
      CHECK_MSG(strstr(err.text, fa_family_name((fa_family)k)), "%s", err.text);
    fa_waivers_free(w);
  }
}

static void check_regex(void) {
  fa_waivers *w = NULL;
  fa_error err = {""};
  CHECK(parse(FILE_OF(WAIVER("\"name\":\"a(\"", "2030-02-28")), &w, &err) == FA_ERR_INPUT);
  CHECK_MSG(strstr(err.text, "no POSIX extended regular expression: Unmatched ( or \\("), "%s", err.text);
  CHECK(parse(FILE_OF(WAIVER("\"name\":\"a(\",\"backend\":\"b\"", "2030-02-28")), &w, &err) == FA_ERR_INPUT);
  CHECK(parse(FILE_OF(WAIVER("\"device\":7", "2030-02-28")), &w, &err) == FA_ERR_INPUT);
  CHECK_MSG(strstr(err.text, "match.device: a string is needed"), "%s", err.text);
}

/* Of two that apply, the first one is the case's. */
static void check_first(void) {
  static fa_result r;
  fa_waivers *w = NULL;
  fa_error err = {""};
  fa_case c;
  CHECK_MSG(parse(FILE_OF(WAIVER("\"name\":\"a\"", "2030-02-28") "," WAIVER("\"name\":\".\"", "2031-02-28")),
                  &w, &err) == FA_OK,
            "%s", err.text);
  REQUIRE(w && fa_case_init(&c) == FA_OK);
  fa_result_init(&r);
  r.state = FA_FAIL;
  r.name = strdup("a");
  fa_waivers_apply(w, &c.problem, "", &r);
  CHECK_MSG(r.waived && strstr(r.waiver, "2030-02-28: r2030-02-28"), "%s", r.waiver);
  fa_result_free(&r);
  fa_case_free(&c);
  fa_waivers_free(w);
}

/* ---- what is given back ---- */

static void use_all(void) {
  fa_journal j;
  fa_error err = {""};
  fa_waivers *w = NULL;
  char *text = NULL;
  static char line[100000];
  memset(line, 'x', sizeof line - 1);
  REQUIRE(fa_journal_open(&j, path, true, &text, &err) == FA_OK);
  free(text);
  fa_journal_append(&j, line);
  REQUIRE(fa_journal_close(&j, true, &err) == FA_OK);
  memset(line, ' ', sizeof line - 1);
  static const char known[] = FILE_OF(WAIVER("\"name\":\"a|b\",\"device\":\"c+\"", "2030-02-28"));
  memcpy(line, known, strlen(known));
  write_text(line);
  CHECK_MSG(fa_waivers_load(path, "2000-01-01", &w, &err) == FA_OK, "%s", err.text);
  fa_waivers_free(w);
  unlink(path);
}

static void check_leaks(void) {
  use_all();
  const size_t before = bytes_taken();
  for (int i = 0; i < 20; ++i) use_all();
  CHECK_MSG(bytes_taken() < before + 50000, "%zu bytes are kept", bytes_taken() - before);
}

static void check_tier(void) {
  enum { LARGE = 1 << 20 };
  const size_t before = bytes_taken();
  fa_tier t = {.order = malloc(LARGE), .seconds_of = malloc(LARGE)};
  fa_tier_free(&t);
  CHECK(bytes_taken() < before + LARGE && !t.order);
}

int main(void) {
  char *slash = strrchr(path, '/');
  *slash = 0;
  REQUIRE(mkdtemp(path));
  *slash = '/';
  check_torn();
  check_replaced();
  unlink(path);
  check_moved();
  check_refused();
  check_full();
  check_dates();
  check_digits();
  check_lists();
  check_families();
  check_regex();
  check_first();
  check_leaks();
  check_tier();
  *slash = 0;
  CHECK(rmdir(path) == 0);
  return check_done();
}
