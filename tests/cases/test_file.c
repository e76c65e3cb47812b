/* Case files as a whole: defaults, sweeps, random parts, bare cases, JSON lines, saving. */
#include "cases/codec/file.h"
#include "cases/codec/json.h"
#include "cases/recipe/case.h"
#include "tests/support/check.h"
#include "tests/support/random_case.h"

#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static fa_case_list load_with(const char *text, fa_generate_fn generate) {
  fa_case_list list = {0};
  fa_error err = {""};
  fa_status status = fa_case_file_parse(text, strlen(text), "cases/some.json", generate, &list, &err);
  CHECK_MSG(status == FA_OK, "%s: %s", err.text, text);
  return list;
}

static fa_case_list load(const char *text) {
  return load_with(text, NULL);
}

/* The canonical lines of the file's cases, separated by newlines, must equal `want`. */
static void expect(const char *text, const char *want) {
  static char got[20000];
  fa_case_list list = load(text);
  got[0] = 0;
  for (int64_t i = 0; i < list.n; ++i) {
    char *line = fa_case_to_line(&list.v[i]);
    size_t n = strlen(got);
    snprintf(got + n, sizeof got - n, "%s%s", i ? "\n" : "", line);
    free(line);
  }
  CHECK_MSG(strcmp(got, want) == 0, "\n%s\n got\n%s\n want\n%s", text, got, want);
  fa_case_list_free(&list);
}

#define F16 "\"family\":\"flash\",\"dtype\":\"f16\""
#define BF16 "\"family\":\"flash\",\"dtype\":\"bf16\""

static void test_defaults(void) {
  expect("{\"fa_cases\": 1}", "");
  expect("{\"fa_cases\": 1, \"note\": \"x\", \"$schema\": \"schema.json\", \"cases\": []}", "");
  expect("{\"fa_cases\": 1, \"cases\": [{}, {\"name\": \"b\"}]}",
         "{\"name\":\"some/0\"," F16 "}\n{\"name\":\"b\"," F16 "}");
  /* A case's key replaces the defaults' key completely, objects too. */
  expect(
      "{\"cases\": [{\"name\": \"a\"}, {\"name\": \"b\", \"mask\": {\"right\": 2, \"type\": \"window\"}}], "
      "\"defaults\": {\"dtype\": \"bf16\", \"mask\": {\"type\": \"window\", \"left\": 1}}, \"fa_cases\": 1}",
      "{\"name\":\"a\"," BF16 ",\"mask\":{\"type\":\"window\",\"left\":1}}\n"
      "{\"name\":\"b\"," BF16 ",\"mask\":{\"type\":\"window\",\"right\":2}}");
}

static void test_sweeps(void) {
  expect(
      "{\"fa_cases\": 1, \"sweeps\": [{\"base\": {\"name\": \"square\"}, \"over\": {\"seqlen_q\": [1, 64], "
      "\"head_dim\": [64, 128]}}]}",
      "{\"name\":\"square/seqlen_q=1,head_dim=64\"," F16 "}\n"
      "{\"name\":\"square/seqlen_q=1,head_dim=128\"," F16 ",\"head_dim\":128}\n"
      "{\"name\":\"square/seqlen_q=64,head_dim=64\"," F16 ",\"seqlen_q\":64}\n"
      "{\"name\":\"square/seqlen_q=64,head_dim=128\"," F16 ",\"seqlen_q\":64,\"head_dim\":128}");
  /* over overrides base, base overrides defaults; without a name the file's is used. */
  expect(
      "{\"fa_cases\": 1, \"defaults\": {\"seqlen_q\": 5, \"dtype\": \"bf16\", \"heads_q\": 2}, \"sweeps\": "
      "[{\"over\": {\"seqlen_q\": [7]}, \"base\": {\"seqlen_q\": 6, \"heads_q\": 3}}]}",
      "{\"name\":\"some/sweeps[0]/seqlen_q=7\"," BF16 ",\"heads_q\":3,\"seqlen_q\":7}");
  /* Dotted keys change one key of an object and keep its others; whole objects replace. */
  expect("{\"fa_cases\": 1, \"defaults\": {\"mask\": {\"type\": \"window\", \"left\": 3}}, \"sweeps\": "
         "[{\"base\": "
         "{\"name\": \"s\"}, \"over\": {\"mask.right\": [0, 9], \"dropout.p\": [0.5], \"strides.q.offset\": "
         "[1]}}]}",
         "{\"name\":\"s/mask.right=0,dropout.p=0.5,strides.q.offset=1\"," F16
         ",\"strides\":{\"q\":{\"offset\":1}},\"mask\":{\"type\":\"window\",\"left\":3,\"right\":0},"
         "\"dropout\":{"
         "\"p\":0.5}}\n"
         "{\"name\":\"s/mask.right=9,dropout.p=0.5,strides.q.offset=1\"," F16
         ",\"strides\":{\"q\":{\"offset\":1}},\"mask\":{\"type\":\"window\",\"left\":3,\"right\":9},"
         "\"dropout\":{"
         "\"p\":0.5}}");
  expect("{\"fa_cases\": 1, \"defaults\": {\"mask\": {\"type\": \"window\", \"left\": 3}}, \"sweeps\": "
         "[{\"base\": "
         "{\"name\": \"s\"}, \"over\": {\"mask\": [{\"type\": \"causal\"}, {}], \"note\": [\"n\"]}}]}",
         "{\"name\":\"s/mask={type:causal},note=n\",\"note\":\"n\"," F16 ",\"mask\":{\"type\":\"causal\"}}\n"
         "{\"name\":\"s/mask={},note=n\",\"note\":\"n\"," F16 "}");
  /* Two dotted keys into one object, and a long value. */
  expect(
      "{\"fa_cases\": 1, \"sweeps\": [{\"base\": {\"name\": \"s\"}, \"over\": {\"mask.type\": [\"window\"], "
      "\"mask.left\": [4], \"note\": [\"0123456789012345678901234567890123456789012345678901234567890\"]}}]}",
      "{\"name\":\"s/mask.type=window,mask.left=4,note=#0\","
      "\"note\":\"0123456789012345678901234567890123456789012345678901234567890\"," F16
      ",\"mask\":{\"type\":\"window\",\"left\":4}}");
}

/* Long names are truncated at whole parts and whole characters. */
static void test_long_names(void) {
  static char text[8000], base[4000];
  for (int i = 0; i < 990; ++i) strcat(base, i % 2 ? "\xc3\xa9" : "x");
  snprintf(
      text, sizeof text,
      "{\"fa_cases\": 1, \"sweeps\": [{\"base\": {\"name\": \"%s\"}, \"over\": {\"seqlen_q\": [1, 2]}}]}",
      base);
  fa_case_list l = load(text);
  CHECK(l.n == 2);
  fa_case_list_free(&l);
}

static fa_status generate(const char *profile, uint64_t seed, int64_t index, fa_case *out, fa_error *err) {
  if (strcmp(profile, "bad") == 0) return fa_fail(err, FA_ERR_INPUT, "no profile \"%s\"", profile);
  if (fa_case_init(out) != FA_OK) return FA_ERR_MEMORY;
  out->data_seed = seed;
  out->problem.seqlen_q = out->problem.seqlen_k = index + 1;
  return FA_OK;
}

static void test_random(void) {
  fa_case_list l =
      load_with("{\"fa_cases\": 1, \"cases\": [{}], \"random\": [{\"count\": 3, \"seed\": \"7\", "
                "\"profile\": \"varlen\"}, {\"count\": 1, \"profile\": \"x\"}]}",
                generate);
  REQUIRE(l.n == 5);
  CHECK(strcmp(l.v[2].name, "varlen/7/1") == 0 && l.v[2].data_seed == 7 && l.v[2].problem.seqlen_q == 2);
  CHECK(strcmp(l.v[4].name, "x/1/0") == 0 && l.v[4].data_seed == 1);
  const char *bad = "{\"fa_cases\": 1, \"random\": [{\"count\": 3, \"profile\": \"bad\"}]}";
  fa_error err = {""};
  int64_t before = l.n;
  CHECK(fa_case_file_parse(bad, strlen(bad), "f", generate, &l, &err) == FA_ERR_INPUT);
  CHECK_MSG(strcmp(err.text, "f: $.random[0]: no profile \"bad\"") == 0, "%s", err.text);
  CHECK(l.n == before);
  fa_case_list_free(&l);
}

static void test_bare(void) {
  expect("{\"seqlen_q\": 4}", "{\"name\":\"some\"," F16 ",\"seqlen_q\":4}");
  expect(" {\"name\": \"x\"} \n", "{\"name\":\"x\"," F16 "}");
  expect("\n{\"seqlen_q\": 4}\r\n\n{\"seqlen_q\":\n5, \"name\": \"n\"}{}\n",
         "{\"name\":\"some/0\"," F16 ",\"seqlen_q\":4}\n{\"name\":\"n\"," F16
         ",\"seqlen_q\":5}\n{\"name\":\"some/2\"," F16 "}");
}

/* A failed load leaves the list unchanged; a successful one appends to it. */
static void test_append(void) {
  fa_case_list l = load("{\"name\": \"first\"}");
  const char *good = "{\"fa_cases\": 1, \"cases\": [{}, {}]}";
  const char *bad = "{\"fa_cases\": 1, \"cases\": [{}, {\"batch\": 0}]}";
  CHECK(fa_case_file_parse(bad, strlen(bad), "f", NULL, &l, NULL) == FA_ERR_INPUT);
  CHECK(l.n == 1 && strcmp(l.v[0].name, "first") == 0);
  CHECK(fa_case_file_parse(good, strlen(good), "f", NULL, &l, NULL) == FA_OK);
  CHECK(l.n == 3 && strcmp(l.v[2].name, "f/1") == 0);
  fa_case_list_free(&l);
}

/* The text need not end with a NUL, because a mapped file does not. */
static void test_exact_buffer(void) {
  const char *text = "{\"fa_cases\": 1, \"cases\": [{\"seqlen_q\": 123}]}";
  for (size_t n = 0; n <= strlen(text); ++n) {
    char *copy = malloc(n ? n : 1);
    memcpy(copy, text, n);
    fa_case_list l = {0};
    fa_status status = fa_case_file_parse(copy, n, "f", NULL, &l, NULL);
    CHECK_MSG((status == FA_OK) == (n == strlen(text)), "%zu bytes", n);
    fa_case_list_free(&l);
    free(copy);
  }
}

static void test_save(void) {
  char path[] = "/tmp/fa_case_file_XXXXXX", file[64];
  REQUIRE(mkdtemp(path));
  snprintf(file, sizeof file, "%s/a.json", path);
  fa_rng r = fa_rng_make(3, 3);
  enum { N = 50 };
  static fa_case c[N];
  for (int i = 0; i < N; ++i) {
    random_case(&r, &c[i]);
    char name[20];
    snprintf(name, sizeof name, "case %d", i);
    CHECK(fa_case_set_name(&c[i], name) == FA_OK);
  }
  for (int n = 0; n <= N; n += N / 2) {
    fa_case_list l = {0};
    fa_error err = {""};
    CHECK_MSG(fa_case_file_save(file, c, n, &err) == FA_OK, "%s", err.text);
    CHECK_MSG(fa_case_file_load(file, NULL, &l, &err) == FA_OK, "%s", err.text);
    CHECK(l.n == n);
    for (int i = 0; i < l.n; ++i) CHECK(fa_case_equal(&c[i], &l.v[i]));
    fa_case_list_free(&l);
  }
  struct stat st;
  mode_t mask = umask(0);
  umask(mask);
  CHECK(stat(file, &st) == 0 && (st.st_mode & 0777) == (0666 & ~mask));
  unlink(file);
  CHECK_MSG(rmdir(path) == 0, "a temp file was left in %s", path);
  fa_error err = {""};
  CHECK(fa_case_file_save(file, c, 1, &err) == FA_ERR_IO); /* the folder is gone */
  CHECK_MSG(strstr(err.text, "/a.json: cannot write: No such file or directory"), "%s", err.text);
  for (int i = 0; i < N; ++i) fa_case_free(&c[i]);
}

/* If the file cannot be replaced, the old one stays and no temporary file is left. */
static void test_save_keeps_old(void) {
  char path[] = "/tmp/fa_case_file_XXXXXX", folder[64], inner[80];
  REQUIRE(mkdtemp(path));
  snprintf(folder, sizeof folder, "%s/a.json", path);
  snprintf(inner, sizeof inner, "%s/x", folder);
  REQUIRE(mkdir(folder, 0777) == 0 && mkdir(inner, 0777) == 0); /* rename cannot replace a folder */
  fa_case c;
  REQUIRE(fa_case_init(&c) == FA_OK);
  CHECK(fa_case_file_save(folder, &c, 1, NULL) == FA_ERR_IO);
  fa_case_free(&c);
  CHECK(rmdir(inner) == 0 && rmdir(folder) == 0);
  CHECK_MSG(rmdir(path) == 0, "a temp file was left in %s", path);
}

int main(void) {
  test_defaults();
  test_sweeps();
  test_long_names();
  test_random();
  test_bare();
  test_append();
  test_exact_buffer();
  test_save();
  test_save_keeps_old();
  return check_done();
}
