/* The text of cases by hand: lines that are written as they were read, numbers that are refused, long strings in messages, what is
 * said of wrong keys, what counts as a file's bytes and cases, and a file that comes from a pipe in many pieces. */
#include "cases/codec/file.h"
#include "cases/codec/json.h"
#include "cases/codec/read.h"
#include "tests/edges/taken.h"
#include "tests/support/check.h"

#include <cjson/cJSON.h>

#include <stdlib.h>
#include <string.h>

/* ---- lines ---- */

static const char *const lines[] = {
    "{\"family\":\"flash\",\"dtype\":\"f16\",\"seqlen_q\":4,\"head_dim\":16}",
    "{\"family\":\"flash\",\"dtype\":\"f16\",\"seqlen_q\":4,\"head_dim\":16,\"mask\":{\"type\":\"window\","
    "\"left\":2,\"right\":0}}",
    "{\"family\":\"flash\",\"dtype\":\"f16\",\"seqlen_q\":4,\"head_dim\":16,\"mask\":{\"type\":\"chunk\","
    "\"left\":0,\"size\":8}}",
    "{\"family\":\"flex\",\"dtype\":\"f16\",\"seqlen_q\":20,\"head_dim\":16,\"score_mod\":\"score + "
    "x[kv_idx]\",\"buffers\":{\"x\":{"
    "\"shape\":[20]}}}",
    "{\"family\":\"flex\",\"dtype\":\"f16\",\"seqlen_q\":20,\"head_dim\":16,\"score_mod\":\"score + "
    "x[kv_idx]\",\"buffers\":{\"x\":{"
    "\"shape\":[20],\"fill\":\"uniform\"}}}",
    "{\"family\":\"flex\",\"dtype\":\"f16\",\"seqlen_q\":20,\"head_dim\":16,\"score_mod\":\"score + "
    "x[kv_idx]\",\"buffers\":{\"x\":{"
    "\"shape\":[20],\"grad\":false}}}",
    "{\"family\":\"flex\",\"dtype\":\"f16\",\"seqlen_q\":20,\"head_dim\":16,\"block_sparse\":{\"q_block\":16,"
    "\"kv_block\":16,"
    "\"kv_num_blocks\":[[[1,2]]],\"kv_indices\":[[[[0,1],[0,1]]]]}}",
    "{\"family\":\"flex\",\"dtype\":\"f16\",\"seqlen_q\":0,\"seqlen_k\":20,\"head_dim\":16,\"block_sparse\":{"
    "\"q_block\":16,"
    "\"kv_block\":16,\"kv_num_blocks\":[[[]]],\"kv_indices\":[[[]]]}}",
    "{\"family\":\"flex\",\"dtype\":\"f16\",\"seqlen_q\":20,\"head_dim\":16,\"score_mod\":\"score + "
    "x[kv_idx]\",\"buffers\":{\"x\":{"
    "\"shape\":[20],\"dtype\":\"i32\",\"below\":1}}}",
    "{\"family\":\"kvcache\",\"dtype\":\"f16\",\"seqlen_k\":20,\"head_dim\":16,\"alibi\":{\"slopes\":[0.5]},"
    "\"kvcache\":{\"len\":[9],"
    "\"new\":1,\"rotary\":{\"dim\":16}}}",
    "{\"family\":\"kvcache\",\"dtype\":\"f16\",\"seqlen_k\":20,\"head_dim\":16,\"kvcache\":{\"len\":[9],"
    "\"page_size\":4,\"rotary\":{\"dim\":16}}}",
    "{\"family\":\"flash\",\"dtype\":\"bf16\",\"seqlen_q\":20,\"head_dim\":16,\"quantized\":{\"dtype\":"
    "\"e4m3\",\"queries\":true}}",
    "{\"family\":\"flash\",\"dtype\":\"f16\",\"seqlen_q\":4,\"head_dim\":16,\"strides\":{\"q\":{\"gap\":[0,8,"
    "0]}}}",
    "{\"family\":\"flash\",\"dtype\":\"f16\",\"seqlen_q\":4,\"head_dim\":16,\"fill\":{\"q\":\"zero\"}}",
    "{\"family\":\"flash\",\"dtype\":\"f16\",\"seqlen_q\":4,\"head_dim\":16,\"mask_bits\":{\"tree\":"
    "\"chain\"}}",
    "{\"family\":\"flash\",\"dtype\":\"f16\",\"seqlen_q\":4,\"head_dim\":16,\"data_seed\":\"2748\",\"law\":"
    "\"repeat\"}",
};

static void check_lines(void) {
  for (size_t i = 0; i < sizeof lines / sizeof *lines; ++i) {
    fa_case c;
    fa_error err = {""};
    CHECK_MSG(fa_case_from_text(lines[i], &c, &err) == FA_OK, "%s: %s", lines[i], err.text);
    char *text = fa_case_to_line(&c);
    CHECK_MSG(text && strcmp(text, lines[i]) == 0, "\n  read    %s\n  written %s", lines[i], text);
    free(text);
    fa_case_free(&c);
  }
}

/* ---- numbers ---- */

static bool is_seed(const char *text, uint64_t want) {
  char json[200];
  fa_case c;
  fa_error err = {""};
  snprintf(json, sizeof json, "{\"data_seed\":\"%s\"}", text);
  const bool good = fa_case_from_text(json, &c, &err) == FA_OK;
  CHECK_MSG(!good || c.data_seed == want, "%s: %llu", text, (unsigned long long)c.data_seed);
  if (good) fa_case_free(&c);
  return good;
}

static void check_seeds(void) {
  CHECK(is_seed("0xaBcD", 0xabcd) && is_seed("0xffffffffffffffff", UINT64_MAX) && is_seed("0", 0));
  CHECK(is_seed("18446744073709551615", UINT64_MAX) && is_seed("0x0000000000000001", 1));
  CHECK(!is_seed("0x00000000000000001", 1)); /* of 17 digits */
  CHECK(!is_seed("18446744073709551616", 0) && !is_seed("1a", 0) && !is_seed("0xg", 0) && !is_seed("01", 1));
  CHECK(!is_seed("", 0) && !is_seed("0x", 0) && !is_seed("-1", 0) && !is_seed("0xG", 0) && !is_seed("1:", 0));
}

/* ---- messages ---- */

/* 60 bytes and no more, but no part of a character. */
static void check_describe(void) {
  static const char sixty[] = "012345678901234567890123456789012345678901234567890123456789";
  const struct {
    const char *tail, *want;
    int keep; /* of the sixty */
  } texts[] = {
      {"", "\"%.*s\"", 60},
      {"x", "\"%.*s...\"", 60},
      {"\xc3\xa9", "\"%.*s...\"", 60},
      {"\xe2\x82\xac!", "\"%.*s...\"", 59},
      {"\xc3\xa9!", "\"%.*s...\"", 59},
      {"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80"
       "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80"
       "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80",
       "\"%.*s...\"", 0}}; /* of no character */
  for (size_t i = 0; i < sizeof texts / sizeof *texts; ++i) {
    char text[100], want[100], buffer[80];
    snprintf(text, sizeof text, "%.*s%s", texts[i].keep, sixty, texts[i].tail);
    snprintf(want, sizeof want, texts[i].want, texts[i].keep, sixty);
    cJSON *v = cJSON_CreateString(text);
    CHECK_MSG(strcmp(fa_read_describe(v, buffer), want) == 0, "%zu: %s, not %s", i, buffer, want);
    cJSON_Delete(v);
  }
}

/* ---- what is refused, and where ---- */

/* A key of 200 bytes, the most that a sweep takes. */
#define FORTY "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define LONG_KEY "mask." FORTY FORTY FORTY FORTY "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define SWEEP(over) "{\"fa_cases\":1,\"sweeps\":[{\"over\":{" over "}}]}"

static const struct {
  const char *text, *says; /* how the message begins */
} wrong[] = {
    {"{\"repeat\":0}", "repeat: 0 is not an integer in 1"},
    {"{\"splits\":-1}", "splits: -1 is not an integer in 0"},
    {"{\"family\":\"merge\",\"head_dim\":16,\"head_dim_v\":32}",
     "head_dim_v: 32, but family \"merge\" has no queries and keys: it is head_dim, 16"},
    {"{\"family\":\"merge\",\"heads_q\":4,\"heads_kv\":2}",
     "heads_kv: 2, but family \"merge\" has no queries and keys: it is heads_q, 4"},
    {"{\"heads_q\":2,\"alibi\":{\"slopes\":[[1,2,3]]}}", "alibi.slopes: is 1 x 3"},
    {"{\"family\":\"memeff\",\"bias\":{\"shape\":[\"b\",\"h\",\"q\"]}}",
     "bias.shape: an array is not [\"b\" or"},
    {"{\"family\":\"memeff\",\"bias\":{\"shape\":[1,1,1,\"k\",\"k\"]}}",
     "bias.shape: an array is not [\"b\" or"},
    {"{\"family\":\"flex\",\"buffers\":{\"x\":{\"shape\":[4],\"strides\":[1],\"below\":0}}}",
     "buffers.x.below: 0 is not an integer in 1"},
    {"{\"family\":\"flex\",\"buffers\":{\"x\":{\"shape\":[4,4],\"strides\":[1,-1]}}}",
     "buffers.x.strides[1]: "},
    {"{\"cu_seqlens_q\":[-1,2]}", "cu_seqlens_q[0]: -1 is not an integer in 0"},
    {"{\"sched\":1}", "sched: unknown key; did you mean \"schedule_seed\"?"}, /* an abbreviation */
    {"{\"head\":1}", "head: unknown key; did you mean \"heads_q\"?"},         /* three letters too few */
    {"{\"repeatxyz\":1}", "repeatxyz: unknown key; known are "},              /* three letters too many */
    {SWEEP("\"sequence\":[1]"), "sweeps[0].over.sequence: unknown key"},
    {SWEEP("\"seqlen_q\":[1],\"heads_q\":5"), "sweeps[0].over.heads_q: 5 is not an array"},
    {SWEEP("\"heads_q\":[\"x\"],\"mask.left\":[\"y\"]"), "sweeps[0].over[\"mask.left\"][0]: \"y\" is not"},
    {SWEEP("\"mask.foo.bar\":[1]"), "sweeps[0].over.mask.foo: unknown key"},
};

static void check_wrong(void) {
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i) {
    char begin[200];
    fa_case_list list = {0};
    fa_error err = {""};
    snprintf(begin, sizeof begin, "x: $.%s", wrong[i].says);
    CHECK(fa_case_file_parse(wrong[i].text, strlen(wrong[i].text), "x", NULL, &list, &err) == FA_ERR_INPUT);
    CHECK_MSG(strncmp(err.text, begin, strlen(begin)) == 0, "%s: %s", wrong[i].text, err.text);
    fa_case_list_free(&list);
  }
}

/* A value under a dotted key that no case can have is wrong whatever the other keys say. */
static void check_structural(void) {
  static const struct {
    const char *text;
    bool structural;
  } texts[] = {{SWEEP("\"mask.left\":[\"y\"]"), true}, {SWEEP("\"mask\":[{}],\"mask.left\":[1]"), false}};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; ++i) {
    fa_case_list list = {0};
    bool structural = !texts[i].structural;
    CHECK(fa_case_file_classify(texts[i].text, strlen(texts[i].text), "x", NULL, &list, &structural, NULL) ==
          FA_ERR_INPUT);
    CHECK_MSG(structural == texts[i].structural, "%s", texts[i].text);
    fa_case_list_free(&list);
  }
}

static void check_long_key(void) {
  static const char *const texts[] = {SWEEP("\"" LONG_KEY "\":[1]"), SWEEP("\"" LONG_KEY "a\":[1]")};
  for (int i = 0; i < 2; ++i) {
    fa_case_list list = {0};
    fa_error err = {""};
    CHECK(fa_case_file_parse(texts[i], strlen(texts[i]), "x", NULL, &list, &err) == FA_ERR_INPUT);
    /* of "mask", not of a case; of one byte more no part is looked at */
    CHECK_MSG((strstr(err.text, "known are type, align") != NULL) == (i == 0), "%s", err.text);
  }
}

/* Of packed rows the offsets alone count. */
static void check_packed_merge(void) {
  fa_case c;
  fa_error err = {""};
  const char *text = "{\"family\":\"merge\",\"cu_seqlens_q\":[0,3,5],\"seqlen_k\":7}";
  const fa_status status = fa_case_from_text(text, &c, &err);
  CHECK_MSG(status == FA_OK, "%s", err.text);
  if (status == FA_OK) fa_case_free(&c);
}

/* Texts have a length; a tree may hold a number as text, of which all must be one. */
static void check_long_and_raw(void) {
  char text[3000];
  fa_case c;
  snprintf(text, sizeof text, "{\"name\":\"%02000d\"}", 0);
  fa_error err = {""};
  CHECK(fa_case_from_text(text, &c, &err) == FA_ERR_INPUT &&
        strstr(err.text, "the string has 2000 characters"));
  for (int good = 0; good <= 1; ++good) {
    cJSON *tree = cJSON_CreateObject();
    cJSON_AddItemToObject(tree, "scale", cJSON_CreateRaw(good ? "0.25" : "0.25 each"));
    CHECK(fa_case_from_json(tree, "$", &c, NULL) == (good ? FA_OK : FA_ERR_INPUT));
    if (good) {
      CHECK(c.problem.scale == 0.25);
      fa_case_free(&c);
    }
    cJSON_Delete(tree);
  }
}

/* What no file can say is written all the same, for who looks at it. */
static void check_invalid_lines(void) {
  fa_case c;
  REQUIRE(fa_case_init(&c) == FA_OK);
  c.problem.mask.left = 5;
  c.law = (fa_law)1000000000;
  char *line = fa_case_to_line(&c);
  CHECK_MSG(line && strstr(line, "\"mask\":{\"left\":5}") && strstr(line, "\"law\":\"?\""), "%s", line);
  free(line);
  c.problem.mask.left = -1, c.problem.mask.size = 7;
  line = fa_case_to_line(&c);
  CHECK_MSG(line && strstr(line, "\"mask\":{\"size\":7}"), "%s", line);
  free(line);
  fa_case_free(&c);
}

/* The sizes of a latent cache that have a default are written where they are others. */
static void check_latent_lines(void) {
  static const struct {
    const char *mla, *want;
  } sizes[] = {{"{}", "\"mla\":{}"},
               {"{\"kv_lora_rank\":512}", "\"mla\":{}"},
               {"{\"kv_lora_rank\":511}", "\"mla\":{\"kv_lora_rank\":511}"}};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
    char text[200];
    fa_case c;
    fa_error err = {""};
    snprintf(text, sizeof text,
             "{\"family\":\"kvcache\",\"seqlen_k\":20,\"mla\":%s,\"kvcache\":{\"len\":[9]}}", sizes[i].mla);
    CHECK_MSG(fa_case_from_text(text, &c, &err) == FA_OK, "%s: %s", text, err.text);
    char *line = fa_case_to_line(&c);
    CHECK_MSG(line && strstr(line, sizes[i].want), "%s: %s", text, line);
    free(line);
    fa_case_free(&c);
  }
}

/* ---- files ---- */

static int64_t bytes_of(const char *text) {
  fa_error err = {""};
  fa_case_file f = {.name = "f", .stem = "f", .err = &err};
  fa_case_field field[8];
  int64_t n = 0;
  cJSON *tree = cJSON_Parse(text);
  REQUIRE(tree);
  fa_case_fields_add(field, &n, tree, "$");
  CHECK_MSG(fa_case_file_add(&f, "$", field, n, "12345678") == FA_OK, "%s: %s", text, err.text);
  cJSON_Delete(tree);
  fa_case_list_free(&f.list);
  return f.n_bytes;
}

/* A file's cases may have so many bytes: numbers of four each, texts, and buffers. */
static void check_bytes(void) {
  CHECK(bytes_of("{\"note\":\"1234\"}") == 8 + 4);
  CHECK(bytes_of("{\"heads_q\":2,\"alibi\":{\"slopes\":[1,2]}}") == 8 + 2 * 4);
  CHECK(bytes_of("{\"family\":\"kvcache\",\"seqlen_k\":8,\"kvcache\":{\"len\":[3]}}") == 8 + 4);
  CHECK(bytes_of("{\"family\":\"flex\",\"score_mod\":\"score\",\"buffers\":{\"x\":{},\"y\":{}}}") ==
        8 + 5 + 2 * (int64_t)sizeof(fa_capture));
}

/* A file's name becomes that of its cases, but for what is no text. */
static void check_stem(void) {
  static const char text[] = "{}";
  fa_case_list list = {0};
  REQUIRE(fa_case_file_parse(text, 2, "some/a~b\x7f\xe9 c.d.json", NULL, &list, NULL) == FA_OK &&
          list.n == 1);
  CHECK_MSG(strcmp(list.v[0].name, "a~b__ c.d") == 0, "%s", list.v[0].name);
  fa_case_list_free(&list);
}

/* The cases of a sweep have the name that the file gives to all. */
static void check_sweep_name(void) {
  static const char text[] =
      "{\"fa_cases\":1,\"defaults\":{\"name\":\"all\"},\"sweeps\":[{\"over\":{\"seqlen_q\":[5]}}]}";
  fa_case_list list = {0};
  REQUIRE(fa_case_file_parse(text, sizeof text - 1, "x", NULL, &list, NULL) == FA_OK && list.n == 1);
  CHECK_MSG(strcmp(list.v[0].name, "all/seqlen_q=5") == 0, "%s", list.v[0].name);
  fa_case_list_free(&list);
}

/* The text of a file may lie behind something else. */
static void check_before(void) {
  static const char text[] = "x{}\n\n{}\n";
  fa_case_list list = {0};
  CHECK(fa_case_file_parse(text + 1, sizeof text - 2, "f", NULL, &list, NULL) == FA_OK && list.n == 2);
  fa_case_list_free(&list);
}

/* One case more than a file may have, a line each. */
static void check_many(void) {
  char *text = malloc(3 * (FA_MAX_FILE_CASES + 1));
  fa_case_list list = {0};
  fa_error err = {""};
  REQUIRE(text);
  for (size_t i = 0; i <= FA_MAX_FILE_CASES; ++i) memcpy(text + 3 * i, "{}\n", 3);
  CHECK(fa_case_file_parse(text, 3 * (FA_MAX_FILE_CASES + 1), "f", NULL, &list, &err) == FA_ERR_INPUT);
  CHECK_MSG(strstr(err.text, "line 100001: $: with its 1 cases the file has more than 100000"), "%s",
            err.text);
  fa_case_list_free(&list);
  free(text);
}

/* Reading a case, and failing to, keeps nothing. */
static void check_leaks(void) {
  size_t before = 0;
  for (int k = 0; k < 200; ++k) {
    fa_case c;
    fa_case_list list = {0};
    if (k == 20) before = bytes_taken();
    REQUIRE(fa_case_from_text("{\"name\":\"x\",\"cu_seqlens_q\":[0,1,2],\"cu_seqlens_k\":[0,1,2]}", &c,
                              NULL) == FA_OK);
    fa_case_free(&c);
    CHECK(fa_case_file_parse("{\"name\":\"x\",\"repeat\":0}", 23, "f", NULL, &list, NULL) == FA_ERR_INPUT);
    fa_case_list_free(&list);
  }
  CHECK_MSG(bytes_taken() < before + 4000, "%zu bytes are kept", bytes_taken() - before);
}

/* ---- from a pipe ---- */

/* More than two pieces, of which the second is as large as what is there, and more. */
static void check_pipe(void) {
  enum { N = 9000 };
  fa_case_list list = {0};
  fa_error err = {""};
  FILE *f = tmpfile();
  REQUIRE(f);
  fputs("{\"fa_cases\":1,\"cases\":[\n", f);
  for (int i = 0; i < N; ++i)
    fprintf(f, "%s{\"name\":\"case number %d\",\"seqlen_q\":%d}", i ? ",\n" : "", i, i % 50);
  fputs("]}\n", f);
  CHECK(ftell(f) > 3 * 65536);
  rewind(f);
  FILE *before = stdin;
  stdin = f;
  CHECK_MSG(fa_case_file_load("-", NULL, &list, &err) == FA_OK, "%s", err.text);
  stdin = before;
  CHECK(list.n == N && list.v[N - 1].problem.seqlen_q == (N - 1) % 50);
  fa_case_list_free(&list);
  fclose(f);
}

int main(void) {
  check_lines();
  check_seeds();
  check_describe();
  check_wrong();
  check_structural();
  check_long_key();
  check_packed_merge();
  check_long_and_raw();
  check_invalid_lines();
  check_latent_lines();
  check_bytes();
  check_stem();
  check_sweep_name();
  check_before();
  check_many();
  check_leaks();
  check_pipe();
  return check_done();
}
