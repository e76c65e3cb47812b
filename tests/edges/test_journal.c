/* The journal of a run, and the file of waivers: what is cut off, refused, moved away, told, and given back. */
#include "fuzz/campaign/journal.h"
#include "fuzz/campaign/tier.h"
#include "fuzz/campaign/waivers.h"
#include "tests/edges/taken.h"
#include "tests/support/check.h"

#include <cjson/cJSON.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char path[] = "/tmp/fa-journal-XXXXXX/run.journal";
static bool replaces;  /* the file is another one by the time that it is locked */
static int lock_fails; /* with this error; 0: it does not */

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
  if (cmd == F_SETLK && lock_fails) {
    errno = lock_fails;
    return -1;
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

/* A file system without locks has none; any other way, another process has it. */
static void check_lock_fails(void) {
  static const struct {
    int error;
    bool opens;
  } rows[] = {{ENOLCK, true}, {EINVAL, true}, {EACCES, false}, {EAGAIN, false}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
    fa_journal j;
    fa_error err = {""};
    char *text = NULL;
    write_text("one\n");
    lock_fails = rows[i].error;
    const fa_status status = fa_journal_open(&j, path, true, &text, &err);
    lock_fails = 0;
    CHECK_MSG(status == (rows[i].opens ? FA_OK : FA_ERR_INPUT), "%d: %s", rows[i].error, err.text);
    CHECK_MSG(rows[i].opens || strstr(err.text, ": another process is writing it"), "%s", err.text);
    free(text);
    CHECK(fa_journal_close(&j, false, &err) == FA_OK);
  }
  unlink(path);
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
  CHECK(is_date(FILE_OF(WAIVER("\"name\":\"a\"", "2028-02-29"))));
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

/* ---- what they do to results ---- */

#define OF(match, how) "{\"match\":{" match "}," how ",\"reason\":\"r\",\"expires\":\"2030-02-28\"}"
#define OLD(match, how) "{\"match\":{" match "}," how ",\"reason\":\"r\",\"expires\":\"1999-12-31\"}"
#define FAIL "\"states\":[\"FAIL\"]"

/* A result of flash in bf16, by the backend "exec:a b" on the device "H200". */
typedef struct shown {
  const char *name;
  fa_state state;
  fa_tensor_bits wrong; /* verdicts that fail */
} shown;

static void apply(fa_waivers *w, const shown *x, fa_result *r) {
  fa_case c;
  REQUIRE(fa_case_init(&c) == FA_OK);
  c.problem.dtype = FA_BF16;
  fa_result_init(r);
  r->state = x->state;
  r->name = x->name ? strdup(x->name) : NULL;
  snprintf(r->backend, sizeof r->backend, "exec:a b");
  for (int id = 0; id < FA_T_COUNT; ++id)
    if (x->wrong >> id & 1) r->verdict[r->n_verdicts++] = (fa_verdict){.id = (fa_tensor_id)id, .fail = true};
  r->waived = true; /* of before */
  strcpy(r->waiver, "before");
  fa_waivers_apply(w, &c.problem, "H200", r);
  fa_case_free(&c);
}

static void check_applied(void) {
  const fa_tensor_bits o = FA_TENSOR_BIT(FA_T_O), dq = FA_TENSOR_BIT(FA_T_DQ), dv = FA_TENSOR_BIT(FA_T_DV);
  static const char until[] = "waiver 0 until 2030-02-28: r", gone[] = "waiver 0 expired on 1999-12-31: r";
  const struct {
    const char *waiver;
    shown x;
    const char *says; /* "": nothing is waived */
  } rows[] = {
      {OF("\"name\":\"a\"", FAIL), {"xay", FA_FAIL, o}, until},
      {OF("\"name\":\"^a\"", FAIL), {"xay", FA_FAIL, o}, ""},
      {OF("\"name\":\"a|b\"", FAIL), {"b", FA_FAIL, o}, until},
      {OF("\"name\":\"^$\"", FAIL), {NULL, FA_FAIL, o}, until},
      {OF("\"name\":\"a\"", FAIL), {"a", FA_PASS, 0}, ""},
      {OF("\"name\":\"a\"", FAIL), {"a", FA_SKIP, 0}, ""},
      {OF("\"name\":\"a\"", FAIL), {"a", FA_CRASH, 0}, ""},
      {OF("\"name\":\"a\"", "\"states\":[\"CRASH\",\"HANG\"]"), {"a", FA_HANG, 0}, until},
      {OF("\"name\":\"a\"", "\"states\":[\"CRASH\",\"HANG\"]"), {"a", FA_FAIL, o}, ""},
      {OF("\"backend\":\"^exec:a\"", FAIL), {"a", FA_FAIL, o}, until},
      {OF("\"backend\":\"^exec:a$\"", FAIL), {"a", FA_FAIL, o}, ""},
      {OF("\"device\":\"H[12]00\"", FAIL), {"a", FA_FAIL, o}, until},
      {OF("\"device\":\"A100\"", FAIL), {"a", FA_FAIL, o}, ""},
      {OF("\"name\":\"a\",\"device\":\"A100\"", FAIL), {"a", FA_FAIL, o}, ""},
      {OF("\"name\":\"b\",\"device\":\"H\"", FAIL), {"a", FA_FAIL, o}, ""},
      {OF("\"family\":\"flash\"", FAIL), {"a", FA_FAIL, o}, until},
      {OF("\"family\":\"memeff\"", FAIL), {"a", FA_FAIL, o}, ""},
      {OF("\"family\":\"flex\"", FAIL), {"a", FA_FAIL, o}, ""},
      {OF("\"dtype\":\"bf16\"", FAIL), {"a", FA_FAIL, o}, until},
      {OF("\"dtype\":\"f16\"", FAIL), {"a", FA_FAIL, o}, ""},
      {OF("\"dtype\":\"f32\"", FAIL), {"a", FA_FAIL, o}, ""},
      {OF("\"family\":\"flash\",\"dtype\":\"f32\"", FAIL), {"a", FA_FAIL, o}, ""},
      {OF("\"name\":\"a\"", "\"tensors\":[\"o\"]"), {"a", FA_FAIL, o}, until},
      {OF("\"name\":\"a\"", "\"tensors\":[\"o\"]"), {"a", FA_FAIL, o | dq}, ""},
      {OF("\"name\":\"a\"", "\"tensors\":[\"o\"]"), {"a", FA_FAIL, dq}, ""},
      {OF("\"name\":\"a\"", "\"tensors\":[\"dv\",\"dq\"]"), {"a", FA_FAIL, dq}, until},
      {OF("\"name\":\"a\"", "\"tensors\":[\"dv\",\"dq\"]"), {"a", FA_FAIL, dq | dv}, until},
      {OF("\"name\":\"a\"", "\"tensors\":[\"dv\",\"dq\"]"), {"a", FA_FAIL, dq | dv | o}, ""},
      {OF("\"name\":\"a\"", "\"tensors\":[\"o\"]"), {"a", FA_FAIL, 0}, ""}, /* a refusal */
      {OF("\"name\":\"a\"", "\"tensors\":[\"o\"]"), {"a", FA_CRASH, 0}, ""},
      {OF("\"name\":\"a\"", "\"tensors\":[\"o\"],\"states\":[\"OOB\"]"), {"a", FA_FAIL, o}, ""},
      {OLD("\"name\":\"a\"", FAIL), {"a", FA_FAIL, o}, gone},
      {OLD("\"name\":\"a\"", FAIL) "," OF("\"name\":\"a\"", FAIL),
       {"a", FA_FAIL, o},
       "waiver 1 until 2030-02-28: r"},
      {OF("\"name\":\"b\"", FAIL) "," OF("\"name\":\"a\"", FAIL),
       {"a", FA_FAIL, o},
       "waiver 1 until 2030-02-28: r"},
      {OF("\"name\":\"a\"", FAIL) "," OLD("\"name\":\"a\"", FAIL), {"a", FA_FAIL, o}, until},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
    static fa_result r;
    char text[700];
    fa_waivers *w = NULL;
    fa_error err = {""};
    snprintf(text, sizeof text, "{\"fa_waivers\":1,\"waivers\":[%s]}", rows[i].waiver);
    CHECK_MSG(parse(text, &w, &err) == FA_OK, "%s", err.text);
    REQUIRE(w);
    apply(w, &rows[i].x, &r);
    CHECK_MSG(strcmp(r.waiver, rows[i].says) == 0 && r.waived == (strstr(r.waiver, "until") != NULL),
              "%zu: %s: %d, \"%s\"", i, rows[i].waiver, r.waived, r.waiver);
    fa_result_free(&r);
    fa_waivers_free(w);
  }
}

/* The first family and the first type are words like the others. */
static void check_others(void) {
  static const char *const words[] = {"\"family\":\"flash\"", "\"family\":\"memeff\"", "\"dtype\":\"f16\"",
                                      "\"dtype\":\"f32\""};
  for (int k = 0; k < 4; ++k) {
    static fa_result r;
    char text[300];
    fa_waivers *w = NULL;
    fa_error err = {""};
    fa_case c;
    snprintf(text, sizeof text,
             "{\"fa_waivers\":1,\"waivers\":[{\"match\":{%s},\"states\":[\"FAIL\"],\"reason\":\"r\","
             "\"expires\":\"2030-02-28\"}]}",
             words[k]);
    REQUIRE(parse(text, &w, &err) == FA_OK && fa_case_init(&c) == FA_OK);
    c.problem.family = FA_MEMEFF, c.problem.dtype = FA_F32;
    fa_result_init(&r);
    r.state = FA_FAIL;
    fa_waivers_apply(w, &c.problem, "", &r);
    CHECK_MSG(r.waived == k % 2, "%s", words[k]);
    fa_result_free(&r);
    fa_case_free(&c);
    fa_waivers_free(w);
  }
}

/* What is said at the end of a run with these results, each of a case "a", and whether it fails. */
static void check_concluded(void) {
  static const struct {
    bool old, whole;
    fa_state states[3]; /* FA_UNTESTED: no more */
    const char *says;
    bool fails;
  } rows[] = {
      {false,
       true,
       {FA_PASS, FA_PASS, FA_UNTESTED},
       "known.json: $.waivers[0] (r): all 2 cases that it matches passed; remove it: an unneeded waiver "
       "fails the run\n",
       true},
      {false,
       false,
       {FA_PASS, FA_UNTESTED, FA_UNTESTED},
       "known.json: $.waivers[0] (r): all 1 cases that it matches passed here; is it still needed?\n",
       false},
      {true,
       true,
       {FA_PASS, FA_UNTESTED, FA_UNTESTED},
       "known.json: $.waivers[0] (r): all 1 cases that it matches passed here; is it still needed?\n",
       false},
      {false, true, {FA_UNTESTED, FA_UNTESTED, FA_UNTESTED}, "", false},
      {false, true, {FA_SKIP, FA_ERROR, FA_UNTESTED}, "", false},
      {false, true, {FA_PASS, FA_FAIL, FA_UNTESTED}, "", false},
      {false, true, {FA_PASS, FA_CRASH, FA_UNTESTED}, "", false},
      {false, true, {FA_FAIL, FA_FAIL, FA_FAIL}, "", false},
      {true,
       true,
       {FA_FAIL, FA_FAIL, FA_UNTESTED},
       "known.json: $.waivers[0]: expired on 1999-12-31; its 2 failures count\n",
       false},
      {true, true, {FA_CRASH, FA_UNTESTED, FA_UNTESTED}, "", false},
      {true,
       true,
       {FA_PASS, FA_FAIL, FA_UNTESTED},
       "known.json: $.waivers[0]: expired on 1999-12-31; its 1 failures count\n",
       false},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
    fa_waivers *w = NULL;
    fa_error err = {""};
    char *said = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&said, &n);
    REQUIRE(out &&
            parse(rows[i].old ? FILE_OF(OLD("\"name\":\"a\"", FAIL)) : FILE_OF(OF("\"name\":\"a\"", FAIL)),
                  &w, &err) == FA_OK);
    for (int k = 0; k < 3 && rows[i].states[k] != FA_UNTESTED; ++k) {
      static fa_result r;
      apply(w, &(shown){"a", rows[i].states[k], 0}, &r);
      fa_result_free(&r);
      apply(w, &(shown){"b", FA_FAIL, 0}, &r); /* another's */
      fa_result_free(&r);
    }
    const bool fails = fa_waivers_conclude(w, rows[i].whole, out);
    REQUIRE(fclose(out) == 0);
    CHECK_MSG(fails == rows[i].fails && strcmp(said, rows[i].says) == 0, "%zu: %d, %s", i, fails, said);
    free(said);
    fa_waivers_free(w);
  }
}

/* What a file may not be, and the place that is named. */
static void check_form(void) {
  static const struct {
    const char *text, *says;
  } rows[] = {
      {"[]", "known.json: $.fa_waivers: missing or unknown version; 1 is allowed"},
      {"{\"fa_waivers\":2,\"waivers\":[]}", "$.fa_waivers: missing or unknown version"},
      {"{\"fa_waivers\":\"1\",\"waivers\":[]}", "$.fa_waivers: missing or unknown version"},
      {"{\"fa_waivers\":1}", "$.waivers: an array is needed"},
      {"{\"fa_waivers\":1,\"waivers\":{}}", "$.waivers: an array is needed"},
      {"{\"fa_waivers\":1,\"waivers\":[],\"x\":1}", "$.x: unknown; allowed: fa_waivers, note, waivers"},
      {"{\"fa_waivers\":1,\"waivers\":[3]}", "$.waivers[0]: an object is needed"},
      {FILE_OF(OF("\"name\":\"a\"", FAIL) ",{\"y\":2}"),
       "$.waivers[1].y: unknown; allowed: match, states, tensors, reason, expires, link"},
      {FILE_OF("{\"match\":{\"name\":\"a\"}," FAIL ",\"expires\":\"2030-02-28\"}"),
       "$.waivers[0].reason: missing or empty"},
      {FILE_OF("{\"match\":{\"name\":\"a\"}," FAIL ",\"reason\":\" \\t\\n\",\"expires\":\"2030-02-28\"}"),
       ".reason: missing or empty"},
      {FILE_OF("{\"match\":{\"name\":\"a\"}," FAIL ",\"reason\":7,\"expires\":\"2030-02-28\"}"),
       ".reason: missing or empty"},
      {FILE_OF("{\"match\":{\"name\":\"a\"}," FAIL ",\"reason\":\"r\"}"), ".expires: missing or no date"},
      {FILE_OF("{\"match\":{\"name\":\"a\"}," FAIL
               ",\"reason\":\"r\",\"expires\":\"2030-02-28\",\"link\":3}"),
       ".link: a string is needed"},
      {FILE_OF("{\"match\":{\"name\":\"a\"},\"reason\":\"r\",\"expires\":\"2030-02-28\"}"),
       "$.waivers[0]: states or tensors is needed"},
      {FILE_OF("{" FAIL ",\"reason\":\"r\",\"expires\":\"2030-02-28\"}"),
       "$.waivers[0].match: an object is needed"},
      {FILE_OF(OF("", FAIL)), "$.waivers[0].match: empty: it would waive everything"},
      {FILE_OF(OF("\"nam\":\"a\"", FAIL)),
       "$.waivers[0].match.nam: unknown; allowed: name, family, dtype, backend, device"},
      {FILE_OF(OF("\"family\":3", FAIL)), ".match.family: flash, memeff, flex, kvcache or merge is allowed"},
      {FILE_OF(OF("\"dtype\":3", FAIL)), ".match.dtype: f16, bf16 or f32 is allowed"},
      {FILE_OF(OF("\"dtype\":\"f8\"", FAIL)), ".match.dtype: f16, bf16 or f32 is allowed"},
      {"{", "known.json:1:"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
    fa_waivers *w = NULL;
    fa_error err = {""};
    CHECK_MSG(parse(rows[i].text, &w, &err) == FA_ERR_INPUT && !w && strstr(err.text, rows[i].says), "%s: %s",
              rows[i].text, err.text);
  }
  fa_waivers *w = NULL;
  fa_error err = {""};
  CHECK_MSG(parse("{\"fa_waivers\":1,\"note\":\"n\",\"waivers\":[{\"match\":{\"name\":\"a\"}," FAIL
                  ",\"reason\":\"r\",\"expires\":\"2030-02-28\",\"link\":\"l\"}]}",
                  &w, &err) == FA_OK,
            "%s", err.text);
  fa_waivers_free(w);
  CHECK(fa_waivers_load("/nowhere/w.json", "2000-01-01", &w, &err) == FA_ERR_INPUT && !w);
}

/* Months have their days, and a waiver is good on its last day. */
static void check_days(void) {
  static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  for (int month = 1; month <= 12; ++month)
    for (int more = 0; more < 2; ++more) {
      char text[300];
      snprintf(text, sizeof text,
               "{\"fa_waivers\":1,\"waivers\":[{\"match\":{\"name\":\"a\"},\"states\":[\"FAIL\"],\"reason\":"
               "\"r\",\"expires\":\"2030-%02d-%02d\"}]}",
               month, days[month - 1] + more);
      CHECK_MSG(is_date(text) == !more, "%d", month);
    }
  CHECK(!is_date(FILE_OF(WAIVER("\"name\":\"a\"", "2030-13-01"))) &&
        !is_date(FILE_OF(WAIVER("\"name\":\"a\"", "2030-01-00"))));
  static const char *const last[] = {"2000-01-01", "1999-12-31"};
  for (int k = 0; k < 2; ++k) {
    static fa_result r;
    char text[300];
    fa_waivers *w = NULL;
    fa_error err = {""};
    snprintf(text, sizeof text,
             "{\"fa_waivers\":1,\"waivers\":[{\"match\":{\"name\":\"a\"},\"states\":[\"FAIL\"],\"reason\":"
             "\"r\",\"expires\":\"%s\"}]}",
             last[k]);
    REQUIRE(parse(text, &w, &err) == FA_OK);
    apply(w, &(shown){"a", FA_FAIL, 0}, &r);
    CHECK(r.waived == (k == 0));
    fa_result_free(&r);
    fa_waivers_free(w);
  }
}

/* ---- who else writes a journal ---- */

static void check_locked(void) {
  int ready[2], over[2];
  char byte = 0, want[60], *text = NULL;
  fa_journal j;
  fa_error err = {""};
  write_text("one\n");
  REQUIRE(pipe(ready) == 0 && pipe(over) == 0);
  const pid_t pid = fork();
  if (pid == 0) {
    const bool mine = fa_journal_open(&j, path, true, &text, &err) == FA_OK;
    if (write(ready[1], &byte, 1) != 1 || close(over[1]) != 0 || read(over[0], &byte, 1) < 0) _exit(2);
    _exit(!mine);
  }
  REQUIRE(pid > 0 && read(ready[0], &byte, 1) == 1);
  CHECK(fa_journal_open(&j, path, true, &text, &err) == FA_ERR_INPUT && j.fd == -1 && !j.path && !text);
  snprintf(want, sizeof want, ": process %ld is writing it", (long)pid);
  CHECK_MSG(strstr(err.text, want), "%s", err.text);
  int status = 1;
  REQUIRE(close(over[1]) == 0 && waitpid(pid, &status, 0) == pid);
  CHECK(status == 0 && size_of(path) == 4);
  for (int i = 0; i < 2; ++i) close(ready[i]);
  close(over[0]);
  REQUIRE(fa_journal_open(&j, path, true, &text, &err) == FA_OK);
  free(text);
  for (int i = 0; i < 3; ++i) fa_journal_append(&j, "two");
  CHECK(fa_journal_close(&j, false, &err) == FA_OK && size_of(path) == 16 && j.fd == -1 && !j.path);
  unlink(path);
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

/* What a report says of a tier, and what is printed. */
static void check_tier_said(void) {
  const fa_tier t = {.name = "smoke",
                     .seconds = 30,
                     .n_all = 9,
                     .n_named = 8,
                     .n_run = {5, 4},
                     .n_unable = 2,
                     .n_too_long = 1,
                     .n_features = 77,
                     .n_profiles = 2,
                     .profile = {"causal", "bias"}};
  char *said = NULL;
  size_t n = 0;
  cJSON *o = fa_tier_to_json(&t);
  char *text = cJSON_PrintUnformatted(o);
  CHECK_MSG(strcmp(text, "{\"name\":\"smoke\",\"seconds\":30,\"named\":9,\"named_run\":5,\"random_run\":4,"
                         "\"unable\":2,\"too_long\":1,"
                         "\"features\":77,\"features_judged\":0,\"profiles\":[\"causal\",\"bias\"]}") == 0,
            "%s", text);
  cJSON_free(text);
  cJSON_Delete(o);
  FILE *out = open_memstream(&said, &n);
  REQUIRE(out);
  fa_tier_print_outcome(out, &t);
  REQUIRE(fclose(out) == 0);
  CHECK_MSG(strcmp(said, "tier smoke: ran 5 of 9 named cases and 4 random ones; features judged: 0 of 77; "
                         "left out: 3 named for want of "
                         "time, 2 not run by the backend, 1 too long\n") == 0,
            "%s", said);
  free(said);
}

int main(void) {
  char *slash = strrchr(path, '/');
  *slash = 0;
  REQUIRE(mkdtemp(path));
  *slash = '/';
  check_torn();
  check_replaced();
  check_lock_fails();
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
  check_applied();
  check_others();
  check_concluded();
  check_form();
  check_days();
  check_locked();
  check_leaks();
  check_tier();
  check_tier_said();
  *slash = 0;
  CHECK(rmdir(path) == 0);
  return check_done();
}
